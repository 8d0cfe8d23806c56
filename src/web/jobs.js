// SPDX-License-Identifier: Apache-2.0
// The list of jobs, filtered, sorted and paged by the daemon; and actions on all jobs that match.
import {get, post} from './api.js';
import {go, mayChange, refresh} from './app.js';
import {ago, because, button, count, dialog, field, fill, h, jobLink, runLink, say, state, table, time} from './dom.js';
export {job} from './job.js';

const STATES = ['active', 'paused', 'suspended', 'finished', 'cancelled'];

// A text without wildcards is the beginning of a name, which an index finds.
export const pattern = text => text && (/[*?]/.test(text) ? text : text + '*');

const filterOf = q => ({name: pattern(q.q), state: q.state || 'active,paused,suspended', tag: q.tag, queue: q.queue, owner: q.owner});

const interval = s => s.replace(/^PT([\dHMS]+)( since \S+)?$/, (m, d) => 'every ' + d.toLowerCase());
export const scheduleText = j => [].concat(j.schedule || []).map(interval).join('; ') || 'no schedule';
export const executor = j => j.http ? 'HTTP call' : j.kafka ? 'Kafka message' : j.lambda ? 'Lambda function' : 'command';
const quoted = w => /^[\w@%+=:,./-]+$/.test(w) ? w : "'" + w.replace(/'/g, "'\\''") + "'";
export const commandText = j => j.http ? j.http + ' ' + j.url : j.lambda ? j.lambda + ' in ' + j.region : j.kafka || j.script || (j.command || []).map(quoted).join(' ');

export async function jobs(box, context, path, query) {
	let q = query, controller;
	const list = h('div'), bar = h('form.filters', {role: 'search', onsubmit: e => e.preventDefault()});
	const change = part => go('jobs', {...q, cursor: undefined, back: undefined, ...part}, true);
	const later = (f, ms = 250) => {
		let t;
		return (...a) => {
			clearTimeout(t);
			t = setTimeout(() => f(...a), ms);
		};
	};
	const text = (key, label, type = 'text') => field(label, h('input', {type, value: q[key] || '', autocomplete: 'off', spellcheck: 'false',
		placeholder: {q: 'beginning of a name, or * and ?', tag: 'KEY=VALUE'}[key], oninput: later(e => {
			const value = e.target.value.trim();
			if (key !== 'tag' || !value || /^[^=]+=/.test(value))
				change({[key]: value});
		})}));

	function controls() {
		const chosen = (q.state || 'active,paused,suspended').split(',');
		fill(bar, text('q', 'Search', 'search'), h('fieldset.chips', h('legend', 'State'), STATES.map(s => h('label.chip', h('input', {type: 'checkbox', checked: chosen.includes(s),
			onchange() {
				const boxes = [...bar.querySelectorAll('.chip input')];
				change({state: STATES.filter((x, i) => boxes[i].checked).join(',')});
			}}), s))), text('tag', 'Tag'), text('queue', 'Queue'), text('owner', 'Owner'));
	}

	async function load() {
		controller?.abort();
		controller = new AbortController();
		const filter = filterOf(q), sort = q.sort || (q.q ? 'name' : 'next'), order = q.order || (sort === 'last' ? 'desc' : 'asc');
		const limit = 50, rows = [];
		let cursor = q.cursor, asked = 0;
		// A page can be short when the daemon examined many jobs that do not match.
		do {
			const page = await get('jobs', {...filter, sort, order, limit: limit - rows.length, cursor}, controller.signal);
			rows.push(...page.jobs);
			cursor = page.next_cursor;
			if (++asked > 1)
				fill(list, h('p.note', 'Searching…'));
		} while (cursor && rows.length < limit);
		if (context.ended)
			return;
		const by = key => ({sort: () => change({sort: key, order: sort === key ? order === 'asc' ? 'desc' : 'asc' : undefined}),
			sorted: sort === key ? order === 'asc' ? 'ascending' : 'descending' : undefined});
		const back = (q.back || '').split('~').filter(Boolean);
		fill(list, table('Jobs', [
			['Name', j => jobLink(j.id, j.name), {...by('name'), class: 'name'}],
			['State', j => [state(j.state), j.reason ? h('span.dim', ' ' + j.reason) : null]],
			['Next run', j => j.next_at && j.state === 'active' ? [time(j.next_at), h('span.dim.p4', ' ' + ago(j.next_at))] : h('span.dim', waits(j) || '–'), by('next')],
			['Last run', j => j.last_run ? [state(j.last_run.state), ' ', runLink(j.last_run.id), h('span.dim.p2', ' ' + ago(j.last_run.ended_at || j.last_run.slot))] : h('span.dim', 'never'), by('last')],
			['Schedule', j => h('span.mono', scheduleText(j)), {class: 'p3 clip short'}],
			['Command', j => h('span.mono', commandText(j)), {class: 'p3 clip'}],
			['Owner', j => j.owner, {class: 'p4'}],
			['Number', j => h('span.num', j.id), {...by('created'), class: 'right p2'}],
		], rows, {empty: 'No job matches.'}), q.q && !/[*?]/.test(q.q) ? h('p', button('Search inside names', () => change({q: '*' + q.q + '*'}), {class: 'link'})) : null, h('div.pager',
			button('‹ Previous', () => go('jobs', {...q, cursor: back.at(-1) === '-' ? '' : back.at(-1), back: back.slice(0, -1).join('~')}), {disabled: !back.length}),
			h('span.dim', rows.length + ' shown' + (cursor ? ', more follow' : back.length ? '' : ', all')),
			button('Next ›', () => go('jobs', {...q, cursor, back: [...back, q.cursor || '-'].slice(-50).join('~')}), {disabled: !cursor})));
	}

	controls();
	fill(box, h('div.head', h('h1', 'Jobs'), mayChange() ? h('div.actions',
		button('Act on all matching…', () => actOnAll(filterOf(q), load))) : null), bar, list);
	context.update = next => {
		const focus = document.activeElement?.closest?.('form.filters');
		q = next;
		if (!focus)
			controls();
		else
			syncChips(bar, q);
		load().catch(e => e.name === 'AbortError' || say(e.message, true));
	};
	await refresh(context, load);
}

// The boxes are kept while one of them has the focus.
function syncChips(bar, q) {
	const chosen = (q.state || 'active,paused,suspended').split(',');
	bar.querySelectorAll('.chip input').forEach((box, i) => { box.checked = chosen.includes(STATES[i]); });
}

const waits = j => j.state === 'paused' ? 'paused' : because({waiting_for: j.waiting_for});

// ---- act on all ----

const actions = {pause: 'Pause', resume: 'Resume', run: 'Run now', tag: 'Add a tag'};

// Calls f with the answer of each step; the daemon changes or counts some jobs per step.
async function steps(verb, query, f) {
	let cursor;
	do {
		const r = await post('bulk/' + verb, undefined, {...query, cursor});
		cursor = r.next_cursor;
		if (f(r) === false)
			return;
	} while (cursor);
}

async function actOnAll(filter, after) {
	await dialog('Act on all matching jobs', close => {
		const verb = h('select', {'aria-label': 'action'}, Object.entries(actions).map(a => h('option', {value: a[0]}, a[1])));
		const tag = h('input', {placeholder: 'KEY=VALUE', 'aria-label': 'tag', hidden: true, spellcheck: 'false'});
		const note = h('p', {role: 'status'}), bar = h('progress', {max: 1, value: 0, hidden: true, 'aria-label': 'progress'});
		const start = button('Start', run, {class: 'primary', disabled: true});
		let total = 0, round = 0;
		const query = () => ({...filter, set: verb.value === 'tag' ? tag.value : ''});
		const ready = () => { start.disabled = !total || (verb.value === 'tag' && !/^[^=]+=/.test(tag.value)); };
		async function preview() {
			const mine = ++round;
			tag.hidden = verb.value !== 'tag';
			total = 0;
			start.disabled = true;
			try {
				await steps(verb.value, {...query(), set: tag.hidden ? '' : 'a=b', dry_run: true}, r => {
					total += r.count;
					fill(note, 'Counting… ' + count(total));
					return mine === round;
				});
				if (mine === round)
					fill(note, h('strong', count(total)), ' matching jobs will be changed.');
				ready();
			} catch (e) {
				fill(note, e.message);
			}
		}
		async function run() {
			let done = 0, bad = 0, why = '';
			const mine = ++round, text = () => actions[verb.value] + ': ' + count(done) + ' done' + (bad ? ', ' + count(bad) + ' refused (' + why + ')' : '') + '.';
			start.disabled = verb.disabled = true;
			bar.hidden = false;
			try {
				await steps(verb.value, query(), r => {
					done += r.count;
					bad += r.refused;
					why ||= r.refused_because;
					bar.value = (done + bad) / total;
					fill(note, text());
					return mine === round;
				});
				say(text(), bad > 0);
			} catch (e) {
				say(text() + ' ' + e.message, true);
			}
			start.hidden = true;
			after();
		}
		verb.addEventListener('change', preview);
		tag.addEventListener('input', ready);
		preview();
		return [h('p.dim', Object.entries(filter).filter(f => f[1]).map(f => f.join(': ')).join(', ')), h('div.row', verb, tag), note, bar,
			h('div.actions', button('Close', () => {
				round++;
				close();
			}), start)];
	});
}

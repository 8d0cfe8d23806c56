// SPDX-License-Identifier: Apache-2.0
// One job: why, next and last runs, durations, definition, revisions, editor, actions.
import {get, iso, post, send} from './api.js';
import {act, go, mayChange, refresh} from './app.js';
import {ago, ask, at, because, button, dialog, duration, facts, field, fill, h, late, masked, offset, progress, result, runLink, section, state, svg, table, time, took, weekday, when, zoned} from './dom.js';
import {commandText, executor, scheduleText} from './jobs.js';

const DAY = 86400e3;

export async function job(box, context, [ref]) {
	const parts = {head: h('div'), why: h('div'), next: h('div'), strip: h('div'), runs: h('div'), definition: h('div'), revisions: h('div')};
	let j, shownRevision;
	fill(box, parts.head, h('div.columns', parts.why, parts.next), parts.strip, parts.runs, h('div.columns', parts.definition, parts.revisions));
	const id = encodeURIComponent(ref);

	async function load() {
		const first = !j;
		j = await get('jobs/' + id);
		const [why, next, runs] = await Promise.all([get('jobs/' + j.id + '/why', {limit: 0}),
			get('forecast', {job: j.id, until: iso(Date.now() + 399 * DAY), slots: 10}),
			get('runs', {job: j.id, limit: 100, planned: 'false'})]);
		if (context.ended)
			return;
		document.title = (j.name || '#' + j.id) + ' – jobsched';
		fill(parts.head, head(j, load));
		fill(parts.why, section('Why', h('p', zoned(why.now?.message || 'There is nothing to explain.')),
			why.now?.command ? h('p', 'Next command: ', h('code', why.now.command)) : null,
			facts([['Schedule', h('span.mono', scheduleText(j))], ['Time zone', j.tz], ['Executor', executor(j)], [executor(j) === 'command' ? 'Command' : 'Target', h('pre.mono', commandText(j))],
				['Tags', isSet(j.tags) ? Object.entries(j.tags).map(([k, v]) => h('a.badge', {href: '#/jobs?tag=' + encodeURIComponent(k + '=' + v)}, k + '=' + v)) : null],
				['Queue', j.queue], ['Owner', j.owner], ['Created', time(j.created_at)]])));
		fill(parts.next, section('Next runs', nextRuns(j, next.jobs[0])));
		fill(parts.strip, runs.runs.length > 0 && section(runs.runs.length > 1 ? 'Last ' + runs.runs.length + ' runs' : 'Last runs', strip(runs.runs), durations(runs.runs, j.durations)));
		fill(parts.runs, section('Runs', runTable(runs.runs.slice(0, 20)), h('p', h('a', {href: '#/runs?job=' + j.id}, 'All runs of this job'))));
		if (first || shownRevision !== j.revision) {
			shownRevision = j.revision;
			fill(parts.definition, section('Definition', h('div.actions', mayChange() ? button('Edit…', () => edit(j, load)) : null), definition(j)));
			await revisions(parts.revisions, j, load);
		}
	}
	await refresh(context, load, e => !e.job || e.job === j?.id);
}

function head(j, load) {
	const done = text => async f => { if (await act(text, f)) await load(); };
	const live = ['active', 'paused', 'suspended'].includes(j.state);
	return h('div.head', h('h1', j.name || 'Job ' + j.id, ' ', state(j.state)), h('span.dim.num', '#' + j.id + ' · revision ' + j.revision + (j.reason ? ' · ' + j.reason : '') +
		(j.pause?.until ? ' · until ' + when(j.pause.until) : '')),
	mayChange() ? h('div.actions',
		live ? button('Run now', () => done('A run was queued.')(() => post('jobs/' + j.id + '/run', {})), {class: 'primary'}) : null,
		j.state === 'active' ? button('Pause…', () => pause(j, load)) : null,
		live && j.state !== 'active' || j.state === 'cancelled' ? button('Resume', () => done('The job was resumed.')(() => post('jobs/' + j.id + '/resume', {}))) : null,
		button('Edit…', () => edit(j, load)),
		live ? button('Cancel…', async () => await ask('Cancel this job?', 'Its schedule stops and queued runs end. Running ones continue. \'Resume\' reactivates it.', 'Cancel the job', true) &&
			done('The job was cancelled.')(() => post('jobs/' + j.id + '/cancel', {})), {class: 'danger'}) : null) : null);
}

function pause(j, load) {
	return dialog('Pause ' + (j.name || '#' + j.id), close => {
		const until = h('input', {type: 'datetime-local'}), why = h('input', {maxlength: 200, placeholder: 'shown by \'why\''});
		return [field('Until (empty: until resumed)', until), h('div.row', [['1 hour', 3600e3], ['1 day', DAY], ['1 week', 7 * DAY]].map(([t, ms]) =>
			button(t, () => {
				const d = new Date(Date.now() + ms);
				until.value = new Date(d - d.getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
			}))), field('Reason', why), h('p.dim', 'The time is in the zone of this browser. Slots inside the pause are skipped; active runs continue.'),
		h('div.actions', button('Close', () => close()), button('Pause', async () => {
			const body = {};
			if (until.value)
				body.until = iso(new Date(until.value));
			if (why.value)
				body.reason = why.value;
			if (await act('The job is paused.', () => post('jobs/' + j.id + '/pause', body))) {
				close();
				load();
			}
		}, {class: 'primary'}))];
	});
}

// The change of the clock between two slots is marked, in the zone of the job.
function nextRuns(j, forecast) {
	const slots = forecast?.slots || [];
	if (!slots.length)
		return h('p.dim', j.next_at ? ['Next: ', time(j.next_at)] : 'No future slot is known.');
	const zone = j.tz || 'UTC';
	let before = offset(Date.now(), zone);
	return [forecast.paused ? h('p.note', 'The job is paused; slots inside the pause are skipped.') : null, table('Next runs', [
		['Slot', s => [weekday(s.t, undefined) + ' ', time(s.t)]],
		['In ' + zone, s => [when(s.t, 'full', zone), ' ', h('span.dim', s.offset)], {class: 'p2'}],
		['', s => [h('span.dim', ago(s.t)), s.change ? h('span.badge.warn', {title: 'the difference to UTC changes before this slot'}, 'clock change ' + s.from + ' → ' + s.offset) : null], {label: 'From now'}],
	], slots.slice(0, 10).map(s => {
		const t = s * 1000, o = offset(t, zone), row = {t, offset: o, change: o !== before, from: before};
		before = o;
		return row;
	}))];
}

function strip(runs) {
	return h('ul.strip', {'aria-label': 'last runs, oldest first'}, [...runs].reverse().map(r => h('li', h('a.cell.s-' + r.state,
		{href: '#/runs/' + r.id, 'aria-label': 'run ' + r.id + ' ' + r.state + ' ' + when(r.slot), title: 'run ' + r.id + ': ' + r.state + ', ' + when(r.slot) + (isNaN(took(r)) ? '' : ', ' + duration(took(r)))}))));
}

function durations(runs, stats) {
	const list = [...runs].reverse().filter(r => !isNaN(took(r)));
	if (list.length < 2)
		return null;
	const top = Math.max(...list.map(took), 0.001), w = 600 / Math.max(20, list.length);
	const text = stats?.p50 ? 'median ' + duration(stats.p50) + ', 95 % ' + duration(stats.p95) + (stats.unusual ? '; the last run was unusually ' + stats.unusual : '') + ', ' : '';
	return [svg('svg', {viewBox: '0 0 600 60', preserveAspectRatio: 'none', class: 'chart', role: 'img', 'aria-label': 'durations: ' + text + 'maximum ' + duration(top)},
		...list.map((r, i) => svg('rect', {x: i * w + w * 0.1, width: w * 0.8, y: 60 - Math.max(1, took(r) / top * 58), height: Math.max(1, took(r) / top * 58), class: r.state === 'succeeded' ? 'good' : 'poor'}))),
	h('p.dim', 'Durations: ' + text + 'maximum ' + duration(top) + '.')];
}

export const runTable = (runs, withJob) => table('Runs', [
	['Run', r => runLink(r.id)],
	withJob && ['Job', r => h('a', {href: '#/jobs/' + r.job}, r.job_name || '#' + r.job)],
	['State', r => [result(r), ' ', progress(r)]],
	['Slot', r => time(r.slot)],
	['Duration', r => isNaN(took(r)) ? r.started_at && !r.ended_at ? duration((Date.now() - at(r.started_at)) / 1000) : '' : duration(took(r)), {class: 'right'}],
	['Late', r => duration(late(r)), {class: 'right p2'}],
	['Attempts', r => r.attempt, {class: 'right p3'}],
	['By', r => r.kind, {class: 'p3'}],
	['Node', r => r.node_name, {class: 'p3'}],
	['Reason', because, {class: 'p2'}],
].filter(Boolean), runs, {empty: 'No runs.'});

// ---- definition ----

const NOT_DEFINITION = new Set(('id owner uid state reason pause next_pause revision segment created_at updated_at next_at last_run durations waiting_for ' +
	'warrant findings explain next existed changed replaced').split(' '));
const isSet = v => v !== null && v !== undefined && v !== 0 && v !== '' && !(Array.isArray(v) && !v.length) && !(typeof v === 'object' && !Object.keys(v).length);
const definitionOf = j => Object.fromEntries(Object.entries(j).filter(([k, v]) => !NOT_DEFINITION.has(k) && isSet(v)));
const hide = (k, v) => k === 'env' && v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).map(([n, x]) => [n, masked(n, x)])) : v;
const text = v => typeof v === 'string' ? v : JSON.stringify(v, null, 1);

const definition = j => h('dl.facts', Object.entries(definitionOf(j)).filter(e => e[1] !== 'no').map(([k, v]) => h('div', h('dt', k.replace(/_/g, ' ')), h('dd', h('pre.mono', text(hide(k, v)))))));

export function lineDiff(a, b) {
	const x = a.split('\n'), y = b.split('\n'), n = x.length, m = y.length;
	const len = Array.from({length: n + 1}, () => new Uint16Array(m + 1));
	for (let i = n - 1; i >= 0; i--)
		for (let k = m - 1; k >= 0; k--)
			len[i][k] = x[i] === y[k] ? len[i + 1][k + 1] + 1 : Math.max(len[i + 1][k], len[i][k + 1]);
	const out = [];
	for (let i = 0, k = 0; i < n || k < m;)
		if (i < n && k < m && x[i] === y[k])
			out.push([' ', x[i++], k++]);
		else if (k < m && (i === n || len[i][k + 1] > len[i + 1][k]))
			out.push(['+', y[k++]]);
		else
			out.push(['-', x[i++]]);
	return out;
}

async function revisions(box, j, load) {
	const page = await get('jobs/' + j.id + '/revisions', {limit: 50});
	const list = page.revisions, view = h('div', {'aria-live': 'polite'});
	const show = r => {
		const older = list.find(o => o.revision < r.revision);
		const lines = d => JSON.stringify(d, (k, v) => hide(k, v), 2).split('\n').slice(0, 400).join('\n');
		fill(view, h('h3', 'Revision ' + r.revision + (older ? ' against ' + older.revision : '')), h('pre.diff', {tabindex: 0, 'aria-label': 'difference'},
			lineDiff(older ? lines(older.definition) : '', lines(r.definition)).filter(l => l[1] !== '' || l[0] === ' ').map(([sign, line]) =>
				h('span' + (sign === '+' ? '.plus' : sign === '-' ? '.minus' : ''), sign + ' ' + line + '\n'))));
	};
	fill(box, section('Revisions', table('Revisions', [
		['Revision', r => button(r.revision, () => show(r), {class: 'link num', 'aria-label': 'show revision ' + r.revision})],
		['Change', r => r.what],
		['By', r => r.by],
		['At', r => time(r.at), {class: 'p2'}],
		['', r => mayChange() && r.revision !== j.revision ? button('Restore', async () => {
			if (await ask('Restore revision ' + r.revision + '?', 'The job gets this definition as a new revision.', 'Restore') &&
				await act('Revision ' + r.revision + ' was restored.', () => post('jobs/' + j.id + '/undo', {to: r.revision})))
				load();
		}, {class: 'small'}) : null],
	], list), page.next_cursor ? h('p.dim', 'Older revisions: jobctl history ' + j.id) : null, view));
}

// ---- editor ----

function edit(j, load) {
	const before = definitionOf(j);
	return dialog('Edit ' + (j.name || '#' + j.id), close => {
		const area = h('textarea.mono', {rows: 16, spellcheck: 'false', 'aria-label': 'definition as JSON', value: JSON.stringify(before, null, 2)});
		const preview = h('div.preview', {role: 'status'}), save = button('Save', store, {class: 'primary', disabled: true});
		let timer, turn = 0;
		// A member that was removed gets its default: null in a merge patch.
		function patch() {
			const after = JSON.parse(area.value), p = {};
			for (const k of new Set([...Object.keys(before), ...Object.keys(after)]))
				if (JSON.stringify(before[k]) !== JSON.stringify(after[k]))
					p[k] = merge(before[k], after[k]);
			return p;
		}
		async function check() {
			const mine = ++turn;
			save.disabled = true;
			let p;
			try {
				p = patch();
			} catch (e) {
				fill(preview, h('p.note.bad', 'This is not JSON: ' + e.message));
				return;
			}
			if (!Object.keys(p).length) {
				fill(preview, h('p.dim', 'Nothing is changed.'));
				return;
			}
			try {
				const r = await send('PATCH', 'jobs/' + j.id, p, {dry_run: 'true'});
				if (mine !== turn)
					return;
				fill(preview, r.explain ? h('p', 'Runs ' + r.explain) : null, (r.findings || []).map(f => h('p.note.warn', f.message)),
					r.next?.length ? h('ul.plain', r.next.map(t => h('li', weekday(t) + ' ', time(t), h('span.dim', ' ' + ago(t))))) : null,
					h('p.dim', 'Changes: ' + Object.keys(p).join(', ')));
				save.disabled = false;
			} catch (e) {
				if (mine === turn)
					fill(preview, h('p.note.bad', (e.field ? e.field + ': ' : '') + e.message));
			}
		}
		async function store() {
			if (await act('The job was changed.', () => send('PATCH', 'jobs/' + j.id, patch()))) {
				close();
				load();
			}
		}
		area.addEventListener('input', () => {
			clearTimeout(timer);
			timer = setTimeout(check, 300);
		});
		check();
		return [h('p.dim', 'Members that are removed get their defaults. Values of variables are shown here as they are.'), area, preview,
			h('div.actions', button('Close', () => close()), save)];
	});
}

function merge(a, b) {
	if (b === undefined)
		return null;
	if (a && b && typeof a === 'object' && typeof b === 'object' && !Array.isArray(a) && !Array.isArray(b))
		return {...Object.fromEntries(Object.keys(a).filter(k => !(k in b)).map(k => [k, null])), ...b};
	return b;
}

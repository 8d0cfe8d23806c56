// SPDX-License-Identifier: Apache-2.0
// Dead letters, queues, nodes and events.
import {get, post, send} from './api.js';
import {act, go, mayChange, refresh, session} from './app.js';
import {ask, button, count, dialog, duration, field, fill, h, jobLink, result, runLink, say, section, state, table, time} from './dom.js';

export async function dead(box, context, path, query) {
	let q = query;
	const list = h('div');
	const input = h('input', {value: q.job || '', placeholder: 'number or name', spellcheck: 'false', onchange: () => go('dead', {job: input.value.trim()}, true)});
	async function load() {
		const page = await get('dead', {job: q.job, cursor: q.cursor, limit: 50});
		if (context.ended)
			return;
		const one = (verb, r, text) => async () => { if (await act(text, () => post('runs/' + r.id + '/' + verb))) load(); };
		fill(list, table('Dead letters', [
			['Run', r => runLink(r.id)], ['Job', r => jobLink(r.job, r.job_name)], ['Result', result],
			['Reason', r => r.reason], ['Since', r => time(r.dead_at)], ['Attempts', r => r.attempt, {class: 'right p2'}],
			['', r => mayChange() ? [button('Retry', one('retry', r, 'Run ' + r.id + ' is queued again.'), {class: 'small', 'aria-label': 'retry run ' + r.id}), ' ',
				button('Purge', one('purge', r, 'Run ' + r.id + ' was purged.'), {class: 'small', 'aria-label': 'purge run ' + r.id})] : null],
		], page.runs, {empty: 'No dead letters.'}), pager(q, page, 'dead'));
	}
	// The daemon changes them in steps.
	async function all(verb) {
		const what = q.job ? 'of job ' + q.job : 'of all jobs';
		if (!await ask(verb + ' all dead letters ' + what + '?', verb === 'Retry' ? 'Each run is queued again.' : 'The runs are kept.', verb + ' all', verb !== 'Retry'))
			return;
		let n = 0, refused = 0, why = '', cursor;
		try {
			do {
				const r = await post('dead/' + verb.toLowerCase(), undefined, {job: q.job, cursor});
				n += r.count;
				refused += r.refused;
				why ||= r.refused_because || '';
				cursor = r.next_cursor;
			} while (cursor);
			say(verb + ': ' + count(n) + ' done' + (refused ? ', ' + count(refused) + ' refused (' + why + ')' : '') + '.', refused > 0);
		} catch (e) {
			say(e.message, true);
		}
		load();
	}
	fill(box, h('div.head', h('h1', 'Dead letters'), mayChange() ? h('div.actions', button('Retry all…', () => all('Retry')), button('Purge all…', () => all('Purge'), {class: 'danger'})) : null),
		h('form.filters', {onsubmit: e => e.preventDefault()}, field('Job', input)), list);
	context.update = next => {
		q = next;
		load();
	};
	await refresh(context, load, e => /dead/.test(e.what));
}

const pager = (q, page, view) => h('div.pager', button('‹ First', () => go(view, {...q, cursor: undefined}), {disabled: !q.cursor}),
	button('Older ›', () => go(view, {...q, cursor: page.next_cursor}), {disabled: !page.next_cursor}));

export async function queues(box, context) {
	const list = h('div');
	async function load() {
		const {queues} = await get('queues');
		if (context.ended)
			return;
		fill(list, table('Queues', [
			['Queue', q => h('a', {href: '#/jobs?queue=' + encodeURIComponent(q.name)}, q.name)], ['Active', q => count(q.active), {class: 'right'}], ['Waiting', q => count(q.queued), {class: 'right'}],
			['At once', q => q.max_running ?? h('span.dim', 'no limit'), {class: 'right'}], ['Use', q => q.max_running ? h('meter', {min: 0, max: q.max_running, value: q.active || 0,
				'aria-label': q.active + ' of ' + q.max_running + ' in use'}) : null, {class: 'p2'}],
			['Weight', q => q.weight, {class: 'right p2'}], ['Rate', q => q.rate ?? h('span.dim', 'no limit'), {class: 'p2'}], ['Jobs', q => count(q.jobs), {class: 'right'}],
			['', q => session.role === 'admin' ? button('Change…', () => change(q, load), {class: 'small', 'aria-label': 'change queue ' + q.name}) : null],
		], queues));
	}
	fill(box, h('div.head', h('h1', 'Queues'), session.role === 'admin' ? h('div.actions', button('Add…', () => change(null, load))) : null), list);
	await refresh(context, load);
}

function change(q, load) {
	return dialog(q ? 'Change queue ' + q.name : 'Add a queue', close => {
		const name = h('input', {value: q?.name || '', disabled: !!q, required: true}), running = h('input', {type: 'number', min: 1, max: 100000, value: q?.max_running ?? ''}),
			weight = h('input', {type: 'number', min: 1, max: 10000, value: q?.weight ?? 100}), rate = h('input', {value: q?.rate || '', placeholder: '10/1m'});
		return h('form', {onsubmit: async e => {
			e.preventDefault();
			const body = {max_running: running.value ? Number(running.value) : null, weight: Number(weight.value), rate: rate.value || null};
			if (await act('Queue ' + name.value + ' was saved.', () => send('PUT', 'queues/' + encodeURIComponent(name.value), body, {new: q ? 'false' : 'true'}))) {
				close();
				load();
			}
		}}, field('Name', name), field('Runs at once (empty: no limit)', running), field('Weight', weight), field('Starts per time (empty: no limit)', rate),
		h('div.actions', button('Close', () => close()), h('button.primary', {type: 'submit'}, 'Save')));
	});
}

export async function nodes(box, context) {
	const list = h('div');
	async function load() {
		const all = await get('nodes');
		if (context.ended)
			return;
		const one = (n, verb, text) => button(verb[0].toUpperCase() + verb.slice(1), async () => {
			if ((verb === 'undrain' || await ask(text + '?', verb === 'drain' ? 'It starts nothing new, also after a restart. Active runs continue.' : 'Another node takes the lead.', text)) &&
				await act('Node ' + n.name + ': ' + verb + ' was requested.', () => post('nodes/' + encodeURIComponent(n.name) + '/' + verb)))
				load();
		}, {class: 'small', 'aria-label': verb + ' node ' + n.name});
		const rows = [...all.nodes, ...(all.gone || []).map(n => typeof n === 'string' ? {name: n, state: 'lost'} : n)];
		fill(list, table('Nodes', [
			['Node', n => [n.name, n.leads ? h('span.badge', 'leader') : null, n.drained ? h('span.badge.warn', 'drained') : null]], ['State', n => state(n.state)],
			['Host', n => n.host, {class: 'p2'}], ['Active runs', n => count(n.in_flight), {class: 'right'}], ['Segments', n => n.segments, {class: 'right'}],
			['Lease', n => duration(n.lease_remains), {class: 'right p2'}], ['Clock offset', n => duration(n.clock_offset), {class: 'right p2'}],
			['Labels', n => (n.labels || []).map(l => h('span.badge', l)), {class: 'p2'}], ['Since', n => time(n.since), {class: 'p3'}],
			['', n => session.role === 'admin' && ['alive', 'draining'].includes(n.state) ? [n.drained ? one(n, 'undrain', '') : one(n, 'drain', 'Drain node ' + n.name), ' ',
				n.leads && all.nodes.length > 1 ? one(n, 'resign', 'Let node ' + n.name + ' resign') : null] : null],
		], rows), h('p.dim', 'Leader: ' + (all.leader || 'none') + ', term ' + all.term + '.'));
	}
	fill(box, h('h1', 'Nodes'), list);
	await refresh(context, load);
}

const KINDS = ['', 'job', 'job.add', 'job.change', 'job.cancel', 'job.pause', 'job.resume', 'job.suspend', 'job.remove', 'run', 'run.trigger', 'run.cancel', 'run.dead', 'dead', 'pause', 'resume', 'freeze', 'thaw',
	'queue', 'limit', 'template', 'notice', 'node', 'db'];

export async function events(box, context, path, query) {
	let q = query;
	const list = h('div');
	const kind = h('select', {onchange: () => go('events', {...q, what: kind.value, cursor: ''}, true)}, KINDS.map(k => h('option', {value: k, selected: q.what === k}, k || 'any')));
	const job = h('input', {value: q.job || '', placeholder: 'number or name', spellcheck: 'false', onchange: () => go('events', {...q, job: job.value.trim(), cursor: ''}, true)});
	async function load() {
		const page = await get('events', {what: q.what, job: q.job, run: q.run, cursor: q.cursor, limit: 100});
		if (context.ended)
			return;
		fill(list, table('Events', [
			['At', e => time(e.at)], ['What', e => h('span.mono', e.what)], ['Who', e => e.who || h('span.dim', 'the daemon')],
			['Object', e => [e.job ? jobLink(e.job, e.object || '#' + e.job) : e.object, e.run ? [' run ', runLink(e.run)] : null]],
			['Result', e => e.result === 'ok' ? h('span.dim', 'ok') : e.result], ['Detail', e => e.detail, {class: 'p2'}], ['From', e => e.origin, {class: 'p3'}], ['Number', e => h('span.num', e.id), {class: 'right p4'}],
		], page.events, {empty: 'No events.'}), pager(q, page, 'events'));
	}
	fill(box, h('h1', 'Events'), h('form.filters', {onsubmit: e => e.preventDefault()}, field('Kind', kind), field('Job', job)), list);
	context.update = next => {
		q = next;
		load().catch(e => say(e.message, true));
	};
	await refresh(context, load, () => !q.cursor);
}

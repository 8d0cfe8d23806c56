// SPDX-License-Identifier: Apache-2.0
// The list of runs, and one run: attempts, resources, environment, output, comparison with the last success.
import {get, post} from './api.js';
import {act, go, mayChange, refresh} from './app.js';
import {ask, because, bytes, button, duration, facts, field, fill, h, known, late, masked, progress, result, section, state, table, time, took} from './dom.js';
import {runTable} from './job.js';
import {commandText} from './jobs.js';
import {logViewer} from './log.js';

const STATES = ['queued', 'claimed', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'skipped', 'expired'];

export async function runs(box, context, path, query) {
	let q = query;
	const list = h('div');
	const change = part => go('runs', {...q, cursor: undefined, ...part}, true);
	const select = h('select', {onchange: () => change({state: select.value})}, h('option', {value: ''}, 'any'), [...STATES, 'failed,timed_out,lost', 'claimed,running']
		.map(s => h('option', {value: s, selected: q.state === s}, s.replace(/_/g, ' '))));
	const input = (key, label, hint) => field(label, h('input', {value: q[key] || '', placeholder: hint, spellcheck: 'false', onchange: e => change({[key]: e.target.value.trim()})}));
	let active;
	async function load() {
		const page = await get('runs', {job: q.job, state: q.state, tag: q.tag, queue: q.queue, owner: q.owner, planned: q.planned || 'false', cursor: q.cursor, limit: 50});
		if (context.ended)
			return;
		active = page.runs.some(r => r.started_at && !r.ended_at);
		fill(list, runTable(page.runs, true), h('div.pager', button('‹ First', () => change({}), {disabled: !q.cursor}),
			h('span.dim', page.runs.length + ' shown'), button('Older ›', () => go('runs', {...q, cursor: page.next_cursor}), {disabled: !page.next_cursor})));
	}
	fill(box, h('h1', 'Runs'), h('form.filters', {onsubmit: e => e.preventDefault()}, field('State', select), input('job', 'Job', 'number or name'), input('tag', 'Tag', 'KEY=VALUE'), input('queue', 'Queue', '')), list);
	context.update = next => {
		q = next;
		load();
	};
	await refresh(context, load, e => !q.cursor && (e.what || '').startsWith('run'), () => active && !q.cursor);
}

const final = r => !['queued', 'claimed', 'running'].includes(r.state);

export async function run(box, context, [id]) {
	const parts = {head: h('div'), facts: h('div'), attempts: h('div'), results: h('div'), compare: h('div'), env: h('div'), log: h('div')};
	let r, viewer, shown = '';
	const line = h('pre.mono');
	fill(box, parts.head, h('div.columns', parts.facts, parts.compare), parts.results, parts.attempts, parts.log, parts.env);

	async function load() {
		r = await get('runs/' + encodeURIComponent(id));
		if (context.ended)
			return;
		document.title = 'Run ' + r.id + ' – jobsched';
		const done = text => async f => { if (await act(text, f)) await load(); };
		fill(parts.head, h('div.head', h('h1', 'Run ' + r.id + ' ', state(r.state)), h('span', h('a', {href: '#/jobs/' + r.job}, r.job_name || 'job ' + r.job)), mayChange() ? h('div.actions',
			final(r) ? null : button('End the run…', async () => await ask('End this run?', 'The command gets a termination signal.', 'End the run', true) &&
				done('The run is being ended.')(() => post('runs/' + r.id + '/cancel')), {class: 'danger'}),
			r.dead_at ? [button('Retry', () => done('The run is queued again.')(() => post('runs/' + r.id + '/retry')), {class: 'primary'}),
				button('Purge…', async () => await ask('Purge this dead letter?', 'The run and its output are kept.', 'Purge', true) && done('Purged.')(() => post('runs/' + r.id + '/purge')))] : null,
			button('Run the job again', async () => {
				const next = await act('A run was queued.', () => post('jobs/' + r.job + '/run', {}));
				if (next?.id)
					go('runs/' + next.id);
			})) : null));
		fill(parts.facts, section('Timing', facts([
			['Reason', because(r)], ['Progress', progress(r)], ['Expected end', r.estimated_end && !r.ended_at && time(r.estimated_end, 'full')],
			['Slot', [time(r.slot, 'full'), r.slot_count > 1 ? h('span.dim', ' and ' + (r.slot_count - 1) + ' more slots') : null]], ['Due', time(r.due_at, 'full')], ['Claimed', r.claimed_at && time(r.claimed_at, 'full')],
			['Started', r.started_at && [time(r.started_at, 'full'), r.first_start ? h('span.dim', ' ' + duration(late(r)) + ' after the slot') : null]],
			['Ended', r.ended_at && time(r.ended_at, 'full')], ['Duration', duration(took(r))], ['Exit code', r.exit_code], ['Signal', r.signal],
			['Dead letter', r.dead_at && time(r.dead_at, 'full')], ['Started by', r.kind], ['Command', line], ['Queue', r.queue], ['Node', r.node_name], ['Revision', r.revision]])));
		fill(parts.attempts, section('Attempts', table('Attempts', [
			['Attempt', a => r.attempts.length > 1 ? button(a.attempt, () => openLog(a.attempt), {class: 'link num', 'aria-label': 'output of attempt ' + a.attempt}) : a.attempt],
			['Result', a => [result(a), a.error ? h('span.dim', ' ' + a.error) : null]],
			['Started', a => time(a.started_at)],
			['Duration', a => duration(took(a)), {class: 'right'}],
			['CPU', a => a.max_rss ? duration(a.cpu_user + a.cpu_system) : '', {class: 'right'}],
			['Memory', a => bytes(a.max_rss || null), {class: 'right'}],
			['Read', a => bytes(a.io_read), {class: 'right p3'}],
			['Written', a => bytes(a.io_written), {class: 'right p3'}],
			['Output', a => [bytes(a.output_bytes), Number(a.output_dropped) ? h('span.dim', ' (' + bytes(a.output_dropped) + ' dropped)') : null], {class: 'right p2'}],
			['Process', a => a.pid, {class: 'right p4'}],
			['Node', a => a.node_name, {class: 'p3'}],
		], r.attempts, {empty: 'Not started yet.'})));
		fill(parts.results, r.results && Object.keys(r.results).length ? section('Results', facts(Object.entries(r.results).map(([k, v]) => [k, h('span.mono', typeof v === 'string' ? v : JSON.stringify(v))]))) : null);
		const now = r.state + r.attempts.length;
		if (shown !== now) {
			const before = shown;
			shown = now;
			compare(parts.compare, r);
			environment(parts.env, line, r);
			if (r.attempts.length && (!viewer || !before.endsWith(String(r.attempts.length))))
				openLog();
			else if (viewer && final(r))
				viewer.ended();
			if (!r.attempts.length)
				fill(parts.log, section('Output', h('p.dim', 'No attempt has started.')));
		}
	}

	function openLog(attempt) {
		viewer?.close();
		viewer = logViewer(r.id, attempt, !final(r));
		fill(parts.log, section('Output' + (attempt ? ' of attempt ' + attempt : ''), viewer.element));
	}
	context.onEnd(() => viewer?.close());
	await refresh(context, load, e => !e.run || String(e.run) === String(r?.id), () => r && !final(r));
}

async function compare(box, r) {
	let page;
	try {
		page = await get('runs', {job: r.job, state: 'succeeded', until: r.slot, limit: 1});
	} catch {
		return;
	}
	if (!page.runs[0]) {
		fill(box, section('Last success', h('p.dim', 'No earlier run of this job succeeded.')));
		return;
	}
	const o = await get('runs/' + page.runs[0].id);
	const a = r.attempts.at(-1) || {}, b = o.attempts.at(-1) || {};
	const more = (x, y) => known(x) && y ? (x >= y ? '+' : '') + Math.round((x / y - 1) * 100) + ' %' : '';
	const rows = [['Duration', took(r), took(o), duration], ['Late', late(r), late(o), duration], ['CPU', sum(a), sum(b), duration], ['Memory', a.max_rss, b.max_rss, bytes],
		['Output', a.output_bytes, b.output_bytes, bytes], ['Attempts', r.attempt, o.attempt, String], ['Revision', r.revision, o.revision, String], ['Node', r.node_name, o.node_name, String]];
	fill(box, section('Compared with the last success', h('p', 'Run ', h('a', {href: '#/runs/' + o.id}, o.id), ', ', time(o.slot)), table('Comparison', [
		['', x => x[0], {label: 'Value'}], ['This run', x => known(x[1]) ? x[3](x[1]) : '', {class: 'right'}], ['Then', x => known(x[2]) ? x[3](x[2]) : '', {class: 'right'}],
		['Difference', x => typeof x[1] === 'number' && x[3] !== String ? more(x[1], x[2]) : x[1] !== x[2] ? 'changed' : '', {class: 'right'}]], rows)));
}
const sum = a => a.cpu_user === undefined ? null : a.cpu_user + a.cpu_system;

// What the definition of the run's revision sets, and what the daemon adds.
async function environment(box, line, r) {
	let d;
	try {
		d = (await get('jobs/' + r.job + '/revisions', {revision: r.revision, limit: 1})).revisions[0]?.definition;
	} catch {
		return;
	}
	if (!d)
		return;
	const env = {...d.env, JOBSCHED_JOB: r.job, JOBSCHED_RUN: r.id, JOBSCHED_ATTEMPT: r.attempt, JOBSCHED_SLOT: r.slot, ...(r.job_name ? {JOBSCHED_NAME: r.job_name} : {})};
	fill(line, commandText(d));
	fill(box, h('details.card', h('summary', 'Environment'), h('p.dim', 'Variables of revision ' + r.revision + ' and those that the daemon adds. ', h('code', 'jobctl show --env ' + r.id), ' has all of them.'),
		facts([['directory', h('span.mono', d.cwd)], ...Object.entries(env).map(([k, v]) => [h('span.mono', k), h('span.mono', masked(k, v))])])));
}

// SPDX-License-Identifier: Apache-2.0
// Overview: what fails, waits and runs; nodes; throughput and lateness of the last hour.
import {get, iso, pages} from './api.js';
import {refresh} from './app.js';
import {at, because, count, duration, fill, h, jobLink, result, runLink, section, state, svg, table, time, when} from './dom.js';

const HOUR = 3600e3;
const bad = 'failed,timed_out,lost';

const tile = (label, value, href, kind) => h('a.tile' + (kind && parseInt(value) > 0 ? '.' + kind : ''), {href},
	h('span.value', typeof value === 'string' ? value : count(value)), h('span.label', label));

const late = r => r.started_at ? (at(r.first_start || r.started_at) - at(r.due_at && r.attempt < 2 ? r.due_at : r.slot)) / 1000 : NaN;
function quantile(sorted, q) {
	return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] : NaN;
}

// Runs that ended per minute, stacked: succeeded, failed, and others, for example skipped ones.
function throughput(runs, now) {
	const good = new Array(60).fill(0), poor = new Array(60).fill(0), rest = new Array(60).fill(0);
	for (const r of runs) {
		const i = 59 - Math.floor((now - at(r.ended_at)) / 60e3);
		if (i >= 0 && i < 60)
			(r.state === 'succeeded' ? good : bad.includes(r.state) ? poor : rest)[i]++;
	}
	const top = Math.max(1, ...good.map((g, i) => g + poor[i] + rest[i]));
	const bars = good.flatMap((g, i) => {
		let y = 62;
		return [[g, 'good'], [poor[i], 'poor'], [rest[i], 'rest']].filter(p => p[0]).map(([n, kind]) => {
			y -= n / top * 60;
			return svg('rect', {x: i * 10 + 1, y, width: 8, height: n / top * 60, class: kind});
		});
	});
	const sum = list => list.reduce((a, b) => a + b, 0), total = sum(good), fails = sum(poor);
	const chart = svg('svg', {viewBox: '0 0 600 64', preserveAspectRatio: 'none', class: 'chart', role: 'img',
		'aria-label': total + ' runs succeeded, ' + fails + ' failed and ' + sum(rest) + ' ended otherwise in the last hour; at most ' + top + ' ended in one minute'}, ...bars);
	return [chart, h('div.axis', h('span', '60 min ago'), h('span', 'up to ' + top + ' per minute'), h('span', 'now'))];
}

const sameJob = runs => {
	const jobs = new Map();
	for (const r of runs) {
		const seen = jobs.get(r.job);
		if (seen)
			seen.n++;
		else
			jobs.set(r.job, {...r, n: 1});
	}
	return [...jobs.values()];
};

export async function overview(box, context) {
	let hour, hourAt = 0;
	// The runs of the last hour are many; they are read again every half minute.
	async function lastHour(now, since) {
		if (now - hourAt > 30e3) {
			hour = await pages('runs', 'runs', {since, planned: 'false'}, 1000);
			hourAt = now;
		}
	}
	await refresh(context, async () => {
		const now = Date.now(), since = iso(now - HOUR);
		const [status, nodes, dead, failing, suspended, waiting, running] = await Promise.all([
			get('status'), get('nodes'), get('dead', {limit: 6}), get('runs', {state: bad, since, limit: 100}),
			get('jobs', {state: 'suspended', limit: 20}), get('runs', {state: 'queued', planned: 'false', limit: 30}),
			get('runs', {state: 'claimed,running', limit: 30}), lastHour(now, since)]);
		if (context.ended)
			return;
		const ended = hour.rows.filter(r => r.ended_at);
		const lateness = hour.rows.map(late).filter(x => !isNaN(x) && x > -1).sort((a, b) => a - b);
		const runs = status.runs || {}, jobs = status.jobs || {};
		const fails = sameJob(failing.runs);
		const due = waiting.runs.filter(r => at(r.due_at) <= now);
		const word = (list, page) => list.length + (page.next_cursor ? '+' : '');
		fill(box, h('h1', 'Overview'), problems(status),
			h('div.tiles',
				tile('running', runs.running !== undefined ? runs.running + (runs.claimed || 0) : word(running.runs, running), '#/runs?state=claimed,running'),
				tile('waiting', word(due, waiting), '#/runs?state=queued&planned=false', 'warn'),
				tile('failing, last hour', word(fails, failing), '#/runs?state=' + bad, 'bad'),
				tile('suspended jobs', jobs.suspended ?? word(suspended.jobs, suspended), '#/jobs?state=suspended', 'bad'),
				tile('dead letters', word(dead.runs, dead), '#/dead', 'bad'),
				tile('active jobs', jobs.active ?? status.you?.jobs, '#/jobs?state=active'),
				tile('paused jobs', jobs.paused, '#/jobs?state=paused'),
				tile('late, 95 %', lateness.length ? duration(Math.max(0, quantile(lateness, 0.95))) : '–', '#/timeline')),
			h('div.columns',
				section('Failing in the last hour', table('Failing jobs', [
					['Job', r => jobLink(r.job, r.job_name)],
					['Result', result],
					['Run', r => runLink(r.id)],
					['Times', r => r.n, {class: 'right'}],
					['Ended', r => time(r.ended_at, 'time'), {class: 'p2'}],
				], [...fails.slice(0, 10)], {empty: 'No run failed in the last hour.'}), suspended.jobs.length ? [h('h3', 'Suspended'), h('ul.plain',
					suspended.jobs.slice(0, 8).map(j => h('li', jobLink(j.id, j.name), h('span.dim', ' ' + (j.reason || '')))))] : null),
				section('Waiting', table('Waiting runs', [
					['Job', r => jobLink(r.job, r.job_name)],
					['Because', r => because(r) || 'it starts soon'],
					['Since', r => time(r.due_at, 'time')],
				], due.slice(0, 12), {empty: 'No run waits.'})),
				section('Running', table('Active runs', [
					['Job', r => jobLink(r.job, r.job_name)],
					['Run', r => runLink(r.id)],
					['For', r => duration((now - at(r.started_at || r.claimed_at)) / 1000), {class: 'right'}],
					['Node', r => r.node_name, {class: 'p2'}],
				], running.runs.slice(0, 12), {empty: 'Nothing runs now.'})),
				section('Last hour', throughput(ended, now), h('p.dim',
					count(ended.length) + (hour.cursor ? ' newest' : '') + ' runs ended. Start after the slot: median ' + (duration(quantile(lateness, 0.5)) || '–') +
					', 95 % ' + (duration(quantile(lateness, 0.95)) || '–') + ', maximum ' + (duration(lateness.at(-1)) || '–') + '.')),
				section('Nodes', table('Nodes', [
					['Node', n => [n.name, n.leads ? h('span.badge', 'leader') : null]],
					['State', n => state(n.state)],
					['Runs', n => count(n.in_flight), {class: 'right'}],
					['Segments', n => n.segments, {class: 'right p2'}],
				], nodes.nodes)),
				section('Newest dead letters', table('Dead letters', [
					['Job', r => jobLink(r.job, r.job_name)],
					['Run', r => runLink(r.id)],
					['Reason', r => r.reason],
					['At', r => time(r.dead_at), {class: 'p2'}],
				], dead.runs.slice(0, 6), {empty: 'No dead letters.'}))),
			h('p.dim', 'jobschedd ' + status.version + ' on ' + status.node?.name + ', up ' + duration(status.uptime) + '. ' + when(now, 'time') + '.'));
	});
}

function problems(s) {
	const list = [
		s.store?.away_since && 'The store has not answered since ' + when(s.store.away_since) + ': ' + s.store.away_why,
		s.store?.full && 'The store has no space left; submissions are refused.',
		s.frozen && 'A freeze is in force: only exempted jobs start.',
		s.spawner_up === false && 'The spawner is not connected: ' + (s.spawner_why || 'nothing can start'),
		s.clock && s.clock !== 'ok' && 'The clock is not trusted: ' + s.clock,
		s.stuck_why && 'The daemon is stuck: ' + s.stuck_why,
		s.cluster?.overdue > 0 && count(s.cluster.overdue) + ' slots are overdue.',
	].filter(Boolean);
	return list.length ? h('div.note.bad', {role: 'alert'}, list.map(t => h('p', t))) : null;
}

// SPDX-License-Identifier: Apache-2.0
// One event stream per browser. The tab that holds the lock reads the stream and passes the events to the other tabs.
// Without locks, or without a stream, each tab asks every five seconds.
import {settings} from './dom.js';

const POLL = 5000, REFUSED = 15000;
const listeners = new Set();
const channel = typeof BroadcastChannel === 'function' ? new BroadcastChannel('jobsched') : null;
let poll, source, release, waiting, mode = 'off', lastEvent = 0;

export const paused = () => settings.get('live', 'on') === 'off';
export const live = {get mode() { return paused() ? 'paused' : mode; }, onmode: () => {}};

// f(event) is called with {what, job, run, result}, or {} to reload everything. Returns a function that ends it.
export function listen(f) {
	listeners.add(f);
	return () => listeners.delete(f);
}

function tell(event) {
	if (paused() || document.hidden)
		return;
	for (const f of listeners)
		f(event);
}

function setMode(next) {
	mode = next;
	live.onmode();
}

function startPolling() {
	clearInterval(poll);
	poll = setInterval(() => tell({}), POLL);
	setMode('polling');
}

function openStream(done) {
	source = new EventSource('/v1/stream');
	release = done;
	const pass = e => {
		let event = {};
		try { event = JSON.parse(e.data); } catch { /* a reset */ }
		event.what = e.type === 'reset' ? undefined : e.type;
		tell(event);
		channel.postMessage({event});
	};
	source.onopen = () => {
		clearInterval(poll);
		setMode('stream');
		channel.postMessage({up: true});
	};
	// The browser repeats a connection that was lost, but not one that the daemon refused.
	source.onerror = () => {
		if (source?.readyState === EventSource.CLOSED) {
			startPolling();
			channel.postMessage({up: false});
			setTimeout(done, REFUSED);
		}
	};
	for (const what of KINDS)
		source.addEventListener(what, pass);
	source.onmessage = pass;
}

// Waits for the lock, and again after the stream was refused.
async function join() {
	const mine = waiting = new AbortController();
	while (!mine.signal.aborted) {
		channel.postMessage({ask: true});
		try {
			await navigator.locks.request('jobsched-stream', {signal: mine.signal}, () => new Promise(openStream));
		} catch { /* stop() */ }
		if (!mine.signal.aborted)
			source = null;
	}
}

const KINDS = ('reset run.start run.end run.progress run.trigger run.cancel run.dead job.add job.cancel job.remove job.change job.undo job.pause job.resume ' +
	'job.suspend dead.retry dead.purge pause resume freeze thaw queue.set queue.remove limit.set limit.remove node.open node.close node.set ' +
	'node.leads node.lost node.alarm template.put template.remove token.add token.remove session.open session.close notice.test notice.failed ' +
	'db.prune db.backup db.restore refused.more').split(' ');

export function start() {
	stop();
	startPolling();
	if (channel)
		channel.onmessage = m => {
			if (m.data.event)
				tell(m.data.event);
			if (m.data.up !== undefined && !source) {
				clearInterval(poll);
				m.data.up ? setMode('shared') : startPolling();
			}
			if (m.data.ask && mode === 'stream')
				channel.postMessage({up: true});
		};
	if (navigator.locks && channel)
		join();
}

document.addEventListener('visibilitychange', () => {
	if (!document.hidden && Date.now() - lastEvent > POLL)
		tell({});
	lastEvent = Date.now();
});

export function stop() {
	clearInterval(poll);
	waiting?.abort();
	source?.close();
	source = null;
	release?.();
}

export function toggle() {
	settings.set('live', paused() ? 'on' : 'off');
	live.onmode();
	if (!paused())
		tell({});
}

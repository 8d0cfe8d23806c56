// SPDX-License-Identifier: Apache-2.0
// The frame of the page: login, navigation, settings, and the choice of the view by the fragment of the address.
import {get, post, send, setOnLogout} from './api.js';
import {button, fill, h, localZone, say, settings, throttle, zone} from './dom.js';
import {listen, live, paused, start, stop, toggle} from './live.js';

const views = [
	['', 'Overview', () => import('./overview.js'), 'overview'],
	['jobs', 'Jobs', () => import('./jobs.js'), 'jobs'],
	['runs', 'Runs', () => import('./run.js'), 'runs'],
	['timeline', 'Timeline', () => import('./timeline.js'), 'timeline'],
	['dead', 'Dead letters', () => import('./lists.js'), 'dead'],
	['queues', 'Queues', () => import('./lists.js'), 'queues'],
	['nodes', 'Nodes', () => import('./lists.js'), 'nodes'],
	['events', 'Events', () => import('./lists.js'), 'events'],
];
const main = document.getElementById('main');
export const session = {user: '', role: 'admin'};
export const mayChange = () => session.role !== 'viewer';

// ---- the address ----

export function place() {
	const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
	return {path: path.split('/').map(part => { try { return decodeURIComponent(part); } catch { return part; } }),
		query: Object.fromEntries(new URLSearchParams(query || ''))};
}

export function go(path, query, replace) {
	const p = new URLSearchParams();
	for (const [k, v] of Object.entries(query || {}))
		if (v !== undefined && v !== null && v !== '')
			p.set(k, v);
	const hash = '#/' + path + (p.toString() && '?' + p);
	if (hash === location.hash)
		show();
	else if (replace) {
		history.replaceState(null, '', hash);
		show();
	} else
		location.hash = hash;
}

// ---- views ----

let current = null;

async function show() {
	const {path, query} = place();
	const view = views.find(v => v[0] === path[0]) || views[0];
	const name = view[0] && path[1] ? view[3].replace(/s$/, '') : view[3];
	const key = path.join('/');

	for (const a of document.querySelectorAll('#top nav a'))
		a.setAttribute('aria-current', a.dataset.view === view[0] ? 'page' : 'false');
	if (current?.key === key && current.update) {
		current.query = query;
		current.update(query);
		return;
	}
	current?.end();
	const context = {key, query, ends: [], update: null,
		end() { this.ended = true; this.ends.forEach(f => f()); },
		onEnd(f) { this.ends.push(f); }};
	current = context;
	document.title = (path[1] || view[1]) + ' – jobsched';
	fill(main, h('p.note', 'Loading…'));
	main.focus({preventScroll: true});
	window.scrollTo(0, 0);
	try {
		const module = await view[2]();
		if (!context.ended)
			await module[name](main, context, path.slice(1), query);
	} catch (e) {
		if (!context.ended)
			failed(main, e);
	}
}

export function failed(box, e) {
	if (e.name === 'AbortError')
		return;
	fill(box, h('div.note.bad', {role: 'alert'}, h('strong', 'This could not be shown. '), e.message, ' ', button('Try again', show)));
}

// Runs 'load' now, and again after events that 'wanted' accepts: at most every two seconds, and less often if the daemon is slow.
// While 'moving' is true, values change without events: then also every five seconds.
export async function refresh(context, load, wanted = () => true, moving = () => false) {
	let pause = 2000, failing;
	const timed = async () => {
		const started = Date.now();
		await load();
		pause = Math.min(30000, Math.max(2000, 15 * (Date.now() - started)));
	};
	const again = throttle(async () => {
		if (context.ended)
			return;
		try {
			await timed();
			if (failing)
				live.onmode();
			failing = false;
		} catch (e) {
			if (!context.ended && e.status !== 401 && e.name !== 'AbortError') {
				failing = true;
				live.onmode(e);
			}
		}
	}, () => pause);
	context.onEnd(listen(event => (!event.what || wanted(event)) && again()));
	const timer = setInterval(() => !paused() && !document.hidden && moving() && again(), 5000);
	context.onEnd(() => clearInterval(timer));
	await timed();
}

// Runs an action and says its result.
export async function act(what, f) {
	try {
		const result = await f();
		say(what);
		return result ?? true;
	} catch (e) {
		say(e.status === 403 ? 'You may not do this: ' + e.message : e.message, true);
		return false;
	}
}

// ---- the frame ----

function theme(value) {
	if (value === 'auto')
		delete document.documentElement.dataset.theme;
	else
		document.documentElement.dataset.theme = value;
}

function zoneChooser() {
	const zones = ['UTC', ...(Intl.supportedValuesOf?.('timeZone') || [])];
	const list = h('datalist', {id: 'zones'}, zones.map(z => h('option', {value: z})));
	const input = h('input.zone', {list: 'zones', value: zone(), 'aria-label': 'time zone', title: 'time zone of all times', spellcheck: 'false', onchange() {
		const value = input.value.trim() || localZone;
		try {
			new Intl.DateTimeFormat('en', {timeZone: value});
		} catch {
			say('There is no time zone \'' + value + '\'.', true);
			input.value = zone();
			return;
		}
		settings.set('zone', value);
		input.value = value;
		current?.end();
		current = null;
		show();
	}});
	return [input, list];
}

function frame() {
	const pulse = h('button.pulse', {type: 'button', onclick: toggle});
	const chooser = h('select', {'aria-label': 'colours', onchange() {
		settings.set('theme', chooser.value);
		theme(chooser.value);
		current?.repaint?.();
	}}, ['auto', 'light', 'dark'].map(v => h('option', {value: v, selected: settings.get('theme', 'auto') === v}, v)));
	live.onmode = error => {
		const words = {stream: 'live', shared: 'live', polling: 'live', paused: 'paused', off: 'offline'}[live.mode];
		pulse.className = 'pulse ' + live.mode + (error ? ' bad' : '');
		pulse.setAttribute('aria-pressed', String(live.mode === 'paused'));
		pulse.title = error ? error.message : {stream: 'this tab reads the event stream', shared: 'another tab reads the event stream',
			polling: 'asks every five seconds', paused: 'updates are paused', off: ''}[live.mode];
		fill(pulse, h('span.dot', {'aria-hidden': 'true'}), error ? 'no answer' : words);
	};
	live.onmode();
	fill(document.getElementById('top'),
		h('a.brand', {href: '#/'}, 'jobsched'),
		h('nav', {'aria-label': 'views'}, views.map(([path, title]) => h('a', {href: '#/' + path, 'data-view': path}, title))),
		h('div.tools', pulse, zoneChooser(), chooser,
			session.user ? h('span.user', {title: 'role: ' + session.role}, session.user, session.role === 'viewer' ? ' (read only)' : '') : null,
			session.expires ? button('Log out', logout) : null));
}

async function logout() {
	await act('Logged out.', () => send('DELETE', 'session'));
	stop();
	login();
}

function login(message) {
	current?.end();
	current = null;
	stop();
	fill(document.getElementById('top'), h('span.brand', 'jobsched'));
	const input = h('input', {type: 'password', autocomplete: 'off', required: true, id: 'token', spellcheck: 'false'});
	const form = h('form.card.login', {onsubmit(e) {
		e.preventDefault();
		enter(input.value.trim());
	}}, h('h1', 'Log in'), message ? h('p.note.bad', {role: 'alert'}, message) : null, h('label.field', {for: 'token'}, h('span', 'Token'), input),
		h('p.dim', 'Make one with ', h('code', 'jobctl token add NAME'), '. On this machine, ', h('code', 'jobctl web'), ' opens the page without one.'),
		h('div.actions', h('button.primary', {type: 'submit'}, 'Log in')));
	document.title = 'Log in – jobsched';
	fill(main, form);
	input.focus();
}

async function enter(token) {
	try {
		Object.assign(session, await post('session', {token}));
		open();
	} catch (e) {
		login(e.message);
	}
}

function open() {
	frame();
	start();
	show();
}

async function begin() {
	theme(settings.get('theme', 'auto'));
	const token = /^#token=(.+)/.exec(location.hash);
	if (token) {
		history.replaceState(null, '', '#/');
		return enter(decodeURIComponent(token[1]));
	}
	try {
		Object.assign(session, await get('session'));
	} catch (e) {
		if (e.status === 401)
			return;
		if (e.status !== 404)
			return login(e.message);
	}
	open();
}

setOnLogout(() => document.getElementById('token') || login());
window.addEventListener('hashchange', () => document.getElementById('token') || location.hash.startsWith('#token=') ? begin() : show());
document.querySelector('.skip').addEventListener('click', e => {
	e.preventDefault();
	main.focus();
});
document.addEventListener('keydown', e => {
	if (e.key === '/' && !/INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName) && !e.ctrlKey && !e.metaKey) {
		const box = main.querySelector('input[type=search]');
		e.preventDefault();
		if (box)
			box.focus();
		else
			go('jobs');
	}
});
begin();

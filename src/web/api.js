// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon. Integers beyond 2^53 stay exact: they become strings.

export class Failure extends Error {
	constructor(status, error) {
		super(error.message || 'the daemon answered with status ' + status);
		this.status = status;
		this.code = error.code;
		this.field = error.field;
	}
}

export function parse(text) {
	if (/\d{16}/.test(text))
		text = text.replace(/"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g, m => m[0] === '"' ? m : '"' + m + '"');
	return JSON.parse(text);
}

let onLogout = () => {};
export const setOnLogout = f => { onLogout = f; };

async function failure(answer) {
	let error = {};
	try {
		error = JSON.parse(await answer.text()).error || {};
	} catch { /* not JSON */ }
	if (answer.status === 401)
		onLogout();
	return new Failure(answer.status, error);
}

const later = seconds => new Promise(done => setTimeout(done, seconds * 1000 * (1 + Math.random())));

// Waits and repeats when the daemon refuses a request because of a limit: then it has changed nothing.
export async function raw(path, options = {}, tries = 8) {
	let answer;
	try {
		answer = await fetch(path, {credentials: 'same-origin', ...options});
	} catch (e) {
		if (e.name === 'AbortError')
			throw e;
		throw new Failure(0, {message: 'the daemon does not answer; check \'jobctl status\''});
	}
	if ((answer.status === 429 || (answer.status === 503 && !options.method)) && tries > 0) {
		await later(Number(answer.headers.get('Retry-After')) || 1);
		options.signal?.throwIfAborted();
		return raw(path, options, tries - 1);
	}
	if (!answer.ok)
		throw await failure(answer);
	return answer;
}

export const get = async (path, query, signal) => parse(await (await raw('/v1/' + path + search(query), {signal})).text());

export async function send(method, path, body, query) {
	const options = {method};
	if (body !== undefined) {
		options.headers = {'Content-Type': 'application/json'};
		options.body = JSON.stringify(body);
	}
	const text = await (await raw('/v1/' + path + search(query), options)).text();
	return text ? parse(text) : {};
}
export const post = (path, body, query) => send('POST', path, body, query);

export function search(query) {
	const p = new URLSearchParams();
	for (const [k, v] of Object.entries(query || {}))
		if (v !== undefined && v !== null && v !== '' && v !== false)
			p.set(k, v);
	const text = p.toString();
	return text && '?' + text;
}

export const iso = t => new Date(t).toISOString();

// Reads rows page by page, at most 'max'. A page may be short and still have a next one.
export async function pages(path, member, query, max, signal) {
	const rows = [];
	let cursor = query.cursor;
	do {
		const page = await get(path, {...query, limit: Math.min(1000, max - rows.length), cursor}, signal);
		rows.push(...page[member]);
		cursor = page.next_cursor;
	} while (cursor && rows.length < max);
	return {rows, cursor};
}

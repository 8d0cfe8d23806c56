// SPDX-License-Identifier: Apache-2.0
// Tests of the page in Chromium; run.sh starts the daemon and installs what this needs.
//
//   node browser.mjs URL ADMIN_TOKEN VIEWER_TOKEN SOCKET OUTPUT_DIRECTORY
import {execFileSync} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.WEB_MODULES, 'x.js'));
const {chromium, firefox} = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const [, , base, admin, viewer, socket, out] = process.argv;
const only = process.env.ONLY;
// Debian's Firefox is driven over WebDriver BiDi.
const gecko = process.env.BROWSER === 'firefox';
const browser = await (gecko ? firefox.launch({channel: 'moz-firefox', executablePath: process.env.FIREFOX || '/usr/bin/firefox-esr'})
	: chromium.launch({executablePath: process.env.CHROMIUM || '/usr/bin/chromium', args: ['--no-sandbox']}));
let bad = 0, n = 0;

const api = (method, target, body) => {
	const args = ['-sS', '--unix-socket', socket, '-X', method, 'http://localhost/v1/' + target];
	if (body !== undefined)
		args.push('-H', 'Content-Type: application/json', '-d', JSON.stringify(body));
	return JSON.parse(execFileSync('curl', args, {encoding: 'utf8', maxBuffer: 1 << 28}) || '{}');
};
const assert = (ok, text) => { if (!ok) throw new Error(text); };
async function until(f, text, ms = 15000) {
	for (const end = Date.now() + ms; Date.now() < end; await new Promise(r => setTimeout(r, 100)))
		if (await f())
			return;
	throw new Error('not in time: ' + text);
}

// The style that Playwright adds to a page before a screenshot; the policy of the page refuses it.
const SHOT_STYLE = 'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=';

// Every page collects script errors, dialogs and violations of the content security policy.
async function newPage(options = {}, token = admin) {
	const context = await browser.newContext({viewport: {width: 1280, height: 860}, ...options});
	const page = await context.newPage();
	page.faults = [];
	const fault = text => text.includes(SHOT_STYLE) || page.faults.push(text);
	page.on('pageerror', e => fault(e.message));
	page.on('dialog', d => { page.faults.push('dialog: ' + d.message()); d.dismiss(); });
	page.on('console', m => { if (/Content Security Policy|Refused to|settings blocked/.test(m.text())) fault(m.text()); });
	if (token) {
		await page.goto(base + '/#token=' + token);
		await page.waitForSelector('nav');
		if (gecko && options.colorScheme)
			await colours(page, options.colorScheme);
	}
	return page;
}
// The preference of the system, or, in Firefox, the choice on the page: BiDi of Firefox ESR cannot set the preference.
async function colours(page, colorScheme) {
	if (gecko)
		await page.getByLabel('colours').selectOption(colorScheme);
	else
		await page.emulateMedia({colorScheme});
}
const view = async (page, hash, ready) => {
	await page.goto(base + '/' + hash);
	await page.waitForSelector(ready);
};

const shoot = (page, path) => page.screenshot({path, caret: 'initial'});

async function test(name, f) {
	n++;
	if (only && !name.includes(only))
		return;
	const started = Date.now();
	try {
		await f();
		console.log(`ok ${n} - ${name} # ${Date.now() - started} ms`);
	} catch (e) {
		bad++;
		console.log(`not ok ${n} - ${name}\n# ${String(e.stack || e).split('\n').slice(0, 4).join('\n# ')}`);
	}
	for (const c of browser.contexts())
		await c.close();
}
const clean = page => assert(page.faults.length === 0, page.faults.join('; '));

// ---- things to look at ----

const hostile = ['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', '</title><svg onload=alert(1)>', "javascript:alert(1)", '{{7*7}}${7*7}', '\u202etxt.exe', '\u0000\u001b[2J', '&lt;b&gt;'];
const made = {};
function fixtures() {
	const add = body => {
		const job = api('POST', 'jobs', body);
		assert(job.id, JSON.stringify(job));
		return job;
	};
	made.ok = add({name: 'web-ok', schedule: ['0 2 * * *'], tz: 'Europe/Berlin', tags: {team: 'web'}, script: 'printf "line one\\nneedle here\\n"; seq 1 300'});
	made.bad = add({name: 'web-bad', schedule: ['manual'], script: 'echo no >&2; exit 3', retries: 1, backoff: 'fixed:1s'});
	made.slow = add({name: 'web-slow', schedule: ['manual'], script: 'i=0; while [ $i -lt 400 ]; do echo tick $i; i=$((i+1)); sleep 0.1; done'});
	made.big = add({name: 'web-big', schedule: ['manual'], output_limit: 200000000, script: 'seq 1 6000000; echo the-needle; seq 1 6000000'});
	made.evil = add({name: 'web-evil', schedule: ['manual'], tags: {x: hostile[0], y: hostile[1]}, env: {A: hostile[1]}, description: undefined,
		script: "cat <<'EOF'\n" + hostile.filter(t => !t.includes('\0')).join('\n') + "\n\x1b[31mred\x1b[0m\x1b]52;c;eA==\x07\nEOF\n"});
	for (let i = 0; i < 120; i++)
		add({name: 'web-many-' + i, schedule: [`${i % 60} 3 * * *`], tags: {team: 'many', n: String(i)}, script: 'true'});
	for (const k of ['ok', 'bad', 'evil', 'big'])
		made[k + 'Run'] = api('POST', `jobs/${made[k].id}/run`, {});
	for (const k of ['ok', 'bad', 'evil', 'big'])
		api('GET', `runs/${made[k + 'Run'].id}?wait=120`);
}
fixtures();

// ---- tests ----

await test('a wrong token is refused with a message, a right one logs in, and the fragment is removed', async () => {
	const page = await newPage({}, null);
	await page.goto(base + '/');
	await page.waitForSelector('#token');
	await page.fill('#token', 'wrong');
	await page.click('button[type=submit]');
	await page.waitForSelector('[role=alert]');
	await page.fill('#token', admin);
	await page.keyboard.press('Enter');
	await page.waitForSelector('nav');
	await page.goto(base + '/#token=' + admin);
	await page.waitForSelector('nav');
	assert(!page.url().includes(admin), 'the token is still in the address');
	const cookies = await page.context().cookies();
	assert(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict', 'cookie: ' + JSON.stringify(cookies));
	clean(page);
});

const views = {overview: ['#/', 'text=Last hour'], jobs: ['#/jobs', 'text=web-ok'], job: [() => '#/jobs/' + made.ok.id, 'text=Next runs'], run: [() => '#/runs/' + made.okRun.id, '.logtext'],
	runs: ['#/runs', 'table'], timeline: ['#/timeline?span=3600000', 'text=Peaks'], dead: ['#/dead', 'table'], queues: ['#/queues', 'text=default'], nodes: ['#/nodes', 'text=leader'], events: ['#/events', 'table']};
const address = v => typeof v[0] === 'function' ? v[0]() : v[0];

await test('every view has no script error and no finding of axe-core, light and dark', async () => {
	for (const colorScheme of ['light', 'dark']) {
		const page = await newPage({colorScheme});
		await page.addInitScript(axe);
		for (const [name, v] of Object.entries(views)) {
			await page.goto('about:blank');
			await view(page, address(v), v[1]);
			await page.waitForTimeout(300);
			const r = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
			assert(!r.violations.length, name + ' ' + colorScheme + ': ' + r.violations.map(x => x.id + ' ' + x.nodes.slice(0, 2).map(y => y.html.slice(0, 120)).join(' | ')).join('; '));
		}
		clean(page);
	}
});

await test('no view is wider than the window, from 360 px to 4k; screenshots are kept', async () => {
	for (const [width, height] of [[360, 780], [1280, 860], [2560, 1400], [3840, 2100]])
		for (const colorScheme of width === 3840 ? ['light'] : ['light', 'dark']) {
			const page = await newPage({viewport: {width, height}, colorScheme});
			for (const [name, v] of Object.entries(views)) {
				await view(page, address(v), v[1]);
				await page.waitForTimeout(250);
				assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name + ' is wider than ' + width);
				await shoot(page, `${out}/${name}-${width}-${colorScheme}.png`);
			}
			clean(page);
			await page.context().close();
		}
});

await test('hostile names, tags and output are shown as text', async () => {
	const page = await newPage();
	for (const hash of ['#/jobs/' + made.evil.id, '#/runs/' + made.evilRun.id, '#/jobs?q=' + encodeURIComponent(hostile[0]), '#/jobs?tag=' + encodeURIComponent('x=' + hostile[0]),
		'#/runs?job=' + encodeURIComponent(hostile[1]), '#/jobs/' + encodeURIComponent(hostile[1]), '#/runs/' + encodeURIComponent(hostile[0]), '#/events?what=' + encodeURIComponent(hostile[0]), '#/%E0%A4%A', '#/timeline?span=NaN&at=x'])
		await page.goto(base + '/' + hash).then(() => page.waitForTimeout(500));
	await view(page, '#/runs/' + made.evilRun.id, '.logtext .piece');
	await until(async () => (await page.innerText('.logtext')).includes('<script>alert(1)</script>'), 'the output');
	assert(await page.evaluate(() => !document.querySelector('main img, main script, main svg[onload]')), 'an element came from the output');
	assert(!/[\u202e\u001b]/.test(await page.innerText('.logtext')), 'control characters are shown raw');
	assert(await page.$('.logtext .a-f1'), 'the red text has no class');
	clean(page);
});

await test('jobs are searched, filtered, sorted and paged by the daemon, and the back button works', async () => {
	const page = await newPage();
	await view(page, '#/jobs', 'text=web-ok');
	await page.fill('input[type=search]', 'web-many-11');
	await until(async () => await page.locator('tbody tr').count() === 11, 'eleven rows');
	await page.fill('input[type=search]', '');
	await page.getByLabel('Tag').fill('team=many');
	await until(async () => /tag=team/.test(page.url()) && await page.locator('tbody tr').count() === 50, 'fifty rows');
	await page.getByRole('button', {name: 'Name'}).click();
	await until(async () => (await page.innerText('tbody tr:first-child td')).trim() === 'web-many-0', 'sorted by name');
	await page.getByRole('button', {name: 'Name'}).click();
	await until(async () => (await page.innerText('tbody tr:first-child td')).trim() === 'web-many-99', 'sorted backwards');
	await page.getByRole('button', {name: 'Next ›'}).click();
	await until(async () => /cursor=/.test(page.url()) && !(await page.innerText('tbody')).includes('web-many-99'), 'the second page');
	const second = await page.innerText('tbody tr:first-child td');
	await page.reload();
	await until(async () => await page.innerText('tbody tr:first-child td').catch(() => '') === second, 'the same page after a reload');
	await page.goBack();
	await until(async () => (await page.innerText('tbody')).includes('web-many-99'), 'the first page again');
	await page.getByLabel('finished').check();
	await until(async () => /finished/.test(page.url()), 'the state in the address');
	clean(page);
});

await test('an action on all matching jobs is previewed and done', async () => {
	const page = await newPage();
	await view(page, '#/jobs?tag=team%3Dmany', 'text=web-many');
	await page.getByRole('button', {name: 'Act on all matching'}).click();
	await until(async () => /120 matching jobs/.test((await page.innerText('dialog')).replace(/\s+/g, ' ')), 'the count');
	await page.getByRole('button', {name: 'Start'}).click();
	await until(async () => /120 done/.test(await page.innerText('dialog')), 'all done', 60000);
	assert(api('GET', 'jobs?tag=team%3Dmany&state=paused&limit=1000').jobs.length === 120, 'not all are paused');
	await page.getByRole('button', {name: 'Close', exact: true}).click();
	await page.getByRole('button', {name: 'Act on all matching'}).click();
	await page.getByLabel('action').selectOption('resume');
	await until(async () => /120 matching jobs/.test((await page.innerText('dialog')).replace(/\s+/g, ' ')), 'the count');
	await page.getByRole('button', {name: 'Start'}).click();
	await until(async () => /120 done/.test(await page.innerText('dialog')), 'all done', 60000);
	await page.getByRole('button', {name: 'Close', exact: true}).click();
	await page.getByRole('button', {name: 'Act on all matching'}).click();
	await page.getByLabel('action').selectOption('tag');
	await page.locator('dialog').getByLabel('tag').fill('seen=yes');
	await page.getByRole('button', {name: 'Start'}).click();
	await until(async () => /120 done/.test(await page.innerText('dialog')), 'all done', 60000);
	assert(api('GET', 'jobs?tag=seen%3Dyes&limit=1000').jobs.length === 120, 'not all have the tag');
	assert(api('GET', 'jobs?tag=team%3Dmany&limit=1000').jobs.length === 120, 'another tag was lost');
	clean(page);
});

await test('a job is run, paused until a time, resumed, edited with a preview, restored and cancelled', async () => {
	const page = await newPage(), id = made.ok.id, button = name => page.getByRole('button', {name, exact: true});
	const job = () => api('GET', 'jobs/' + id);
	await view(page, '#/jobs/' + id, 'text=Next runs');
	assert(await page.locator('section:has(h2:text("Next runs")) tbody tr').count() === 10, 'ten next runs');
	await button('Run now').click();
	await page.waitForSelector('.toast');
	await until(() => api('GET', `runs?job=${id}`).runs.length >= 2, 'a run');
	await button('Pause…').click();
	await button('1 day').click();
	await page.locator('dialog').getByRole('button', {name: 'Pause', exact: true}).click();
	await until(() => job().state === 'paused' && job().pause.until, 'paused');
	await button('Resume').click();
	await until(() => job().state === 'active', 'resumed');
	await button('Edit…').first().click();
	const text = await page.inputValue('textarea');
	await page.fill('textarea', text.replace('0 2 * * *', '*/7 * * * *'));
	await until(async () => /starts again at 0/.test(await page.innerText('.preview')), 'the finding');
	await page.fill('textarea', text.replace('0 2 * * *', '61 * * * *'));
	await until(async () => /minute/.test(await page.innerText('.preview')) && await button('Save').isDisabled(), 'the error');
	await page.fill('textarea', text.replace('0 2 * * *', '5 4 * * *'));
	await until(async () => !await button('Save').isDisabled(), 'the preview');
	await button('Save').click();
	await until(() => job().schedule[0] === '5 4 * * *', 'saved');
	await until(async () => await page.locator('button[aria-label="show revision 2"]').count(), 'the revision');
	await page.locator('button[aria-label="show revision 2"]').click();
	await page.waitForSelector('.diff .plus');
	await page.getByRole('button', {name: 'Restore'}).first().click();
	await page.locator('dialog').getByRole('button', {name: 'Restore'}).click();
	await until(() => job().schedule[0] === '0 2 * * *', 'restored');
	await button('Cancel…').click();
	await button('Cancel the job').click();
	await until(() => job().state === 'cancelled', 'cancelled');
	await until(async () => await button('Resume').count() === 1, 'the button');
	await button('Resume').click();
	await until(() => job().state === 'active', 'active again');
	clean(page);
});

await test('a change of the clock is marked among the next runs', async () => {
	const page = await newPage();
	const id = api('POST', 'jobs', {name: 'web-clock', schedule: ['30 2 1 * *'], tz: 'Europe/Berlin', script: 'true'}).id;
	await view(page, '#/jobs/' + id, 'text=Next runs');
	await until(async () => (await page.locator('.badge.warn').allInnerTexts()).some(t => /clock change \+0[12]:00 → \+0[12]:00/.test(t)), 'the mark');
	clean(page);
});

await test('the output of a running job is followed, and the run is ended', async () => {
	const page = await newPage();
	const run = api('POST', `jobs/${made.slow.id}/run`, {});
	await view(page, '#/runs/' + run.id, '.logtext');
	await until(async () => /tick 5\b/.test(await page.innerText('.logtext')), 'the output');
	await until(async () => /tick 20\b/.test(await page.innerText('.logtext')), 'more output');
	await page.getByRole('button', {name: 'End the run…'}).click();
	await page.getByRole('button', {name: 'End the run', exact: true}).click();
	await until(() => api('GET', 'runs/' + run.id).state === 'cancelled', 'cancelled');
	await until(async () => /cancelled/.test(await page.innerText('h1')), 'the new state');
	clean(page);
});

await test('a large output opens at once, keeps a window, and is searched by the daemon', async () => {
	const page = await newPage();
	await view(page, '#/runs', 'table');
	const started = Date.now();
	await page.goto(base + '/#/runs/' + made.bigRun.id);
	await until(async () => /6000000/.test(await page.innerText('.logtext').catch(() => '')), 'the end of the output');
	const took = Date.now() - started;
	assert(took < 3000, 'it took ' + took + ' ms');
	await page.getByLabel('find in the output').fill('the-needle');
	await until(async () => await page.locator('mark').count() && await page.innerText('mark') === 'the-needle', 'the match', 30000);
	const length = await page.evaluate(() => document.querySelector('.logtext').textContent.length);
	assert(length < 600000, 'the window has ' + length + ' characters');
	await page.getByRole('button', {name: 'Start', exact: true}).click();
	await until(async () => (await page.innerText('.logtext')).startsWith('1\n2\n'), 'the start');
	for (let i = 0; i < 12; i++)
		await page.evaluate(() => { const t = document.querySelector('.logtext'); t.scrollTop = t.scrollHeight; }).then(() => page.waitForTimeout(120));
	const lines = (await page.innerText('.logtext')).trim().split('\n').map(Number);
	assert(lines.every((x, i) => i < 2 || i > lines.length - 3 || x === lines[i - 1] + 1), 'lines are missing between pieces');
	clean(page);
});

await test('characters and colours continue across the pieces of an output', async () => {
	const page = await newPage();
	// The escape sequence is once; 300,000 characters of three bytes follow, so that pieces cut some of them.
	const job = api('POST', 'jobs', {name: 'web-umlaut', schedule: ['manual'], script: "printf 'x\\033[31m'; for i in $(seq 3000); do printf '%s\\n' €€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€€; done"});
	const run = api('POST', `jobs/${job.id}/run`, {});
	api('GET', `runs/${run.id}?wait=60`);
	await view(page, '#/runs/' + run.id, '.logtext .piece');
	await page.getByRole('button', {name: 'Start', exact: true}).click();
	await until(async () => (await page.innerText('.logtext')).startsWith('x€'), 'the start');
	for (let i = 0; i < 12; i++)
		await page.evaluate(() => { const t = document.querySelector('.logtext'); t.scrollTop = t.scrollHeight; }).then(() => page.waitForTimeout(120));
	const seen = await page.evaluate(() => ({pieces: document.querySelectorAll('.piece').length, text: document.querySelector('.logtext').textContent,
		plain: [...document.querySelectorAll('.piece')].filter(p => ![...p.children].some(c => c.className === 'a-f1')).length, gaps: document.querySelectorAll('.gap').length}));
	assert(seen.pieces > 3 && !seen.gaps && /^x?[€\n]+$/.test(seen.text) && !seen.plain, JSON.stringify({...seen, text: seen.text.replace(/[€\n]+/g, '…').slice(0, 200)}));
	const text = () => page.evaluate(() => document.querySelector('.logtext').textContent);
	await until(async () => {
		await page.evaluate(() => { document.querySelector('.logtext').scrollTop = 0; });
		return (await text()).startsWith('x');
	}, 'the start again');
	assert(/^x[€\n]+$/.test(await text()), 'a character is cut on the way up');
	clean(page);
});

await test('a run is compared with the last success, and a dead letter is retried and purged', async () => {
	const page = await newPage();
	await view(page, '#/dead', 'text=web-bad');
	await page.getByRole('button', {name: 'retry run ' + made.badRun.id}).click();
	await until(() => api('GET', 'runs/' + made.badRun.id).attempt > 2, 'another attempt', 30000);
	await until(() => api('GET', 'runs/' + made.badRun.id).dead_at, 'dead again', 30000);
	await page.reload();
	await page.getByRole('button', {name: 'purge run ' + made.badRun.id}).click();
	await until(() => !api('GET', 'runs/' + made.badRun.id).dead_at, 'purged');
	const dead = api('POST', `jobs/${made.bad.id}/run`, {});
	await until(() => api('GET', 'runs/' + dead.id).dead_at, 'a dead letter', 30000);
	await view(page, '#/dead', 'text=web-bad');
	await page.getByRole('button', {name: 'Purge all…'}).click();
	await page.getByRole('button', {name: 'Purge all', exact: true}).click();
	await until(async () => /Purge: 1 done/.test(await page.innerText('#status')), 'the count');
	const again = api('POST', `jobs/${made.ok.id}/run`, {});
	api('GET', `runs/${again.id}?wait=30`);
	await view(page, '#/runs/' + again.id, 'text=Compared with the last success');
	clean(page);
});

await test('queues and nodes are changed', async () => {
	const page = await newPage();
	await view(page, '#/queues', 'text=default');
	await page.getByRole('button', {name: 'Add…'}).click();
	await page.getByLabel('Name').fill('webq');
	await page.getByLabel('Runs at once (empty: no limit)').fill('3');
	await page.getByRole('button', {name: 'Save'}).click();
	await until(() => api('GET', 'queues').queues.some(q => q.name === 'webq' && q.max_running === 3), 'the queue');
	await view(page, '#/nodes', 'text=leader');
	await page.getByRole('button', {name: /^drain node/}).click();
	await page.locator('dialog').getByRole('button', {name: /^Drain/}).click();
	await until(() => api('GET', 'nodes').nodes[0].drained, 'drained');
	await page.getByRole('button', {name: /^undrain node/}).click();
	await until(() => !api('GET', 'nodes').nodes[0].drained, 'undrained');
	await view(page, '#/events?what=queue', 'text=webq');
	clean(page);
});

await test('changes appear without a reload, in two tabs with one stream, and can be paused', async () => {
	const page = await newPage(), other = await page.context().newPage();
	await view(page, '#/jobs?q=web-live', 'text=No job matches');
	await other.goto(base + '/#/jobs?q=web-live');
	await other.waitForSelector('text=No job matches');
	api('POST', 'jobs', {name: 'web-live-1', schedule: ['manual'], script: 'true'});
	await until(async () => await other.locator('text=web-live-1').count(), 'the job in the visible tab');
	await page.bringToFront();
	await until(async () => await page.locator('text=web-live-1').count(), 'the job in the other tab');
	await page.locator('.pulse').click();
	await until(async () => /paused/.test(await page.innerText('.pulse')), 'paused');
	api('POST', 'jobs', {name: 'web-live-2', schedule: ['manual'], script: 'true'});
	await page.waitForTimeout(6000);
	assert(await page.locator('text=web-live-2').count() === 0, 'the list changed while paused');
	await page.locator('.pulse').click();
	await until(async () => await page.locator('text=web-live-2').count(), 'the job after the pause');
	clean(page);
});

await test('a tab that logs in again reads the event stream again, also after the daemon refused it', async () => {
	const page = await newPage(), mode = () => page.getAttribute('.pulse', 'class').catch(() => '');
	await until(async () => /stream/.test(await mode()), 'the stream');
	await page.getByRole('button', {name: 'Log out'}).click();
	await page.fill('#token', admin);
	await page.keyboard.press('Enter');
	await until(async () => /stream/.test(await mode()), 'the stream of the second session');
	await page.route('**/v1/stream', route => route.fulfill({status: 503, body: ''}));
	const refused = page.waitForResponse(r => /stream$/.test(r.url()) && r.status() === 503);
	await page.reload();
	await refused;
	await page.unroute('**/v1/stream');
	await until(async () => /stream/.test(await mode()), 'the stream after the refusal', 40000);
	page.faults = page.faults.filter(f => !/establish a connection.*stream/.test(f)); // Firefox reports the refusal as an error
	clean(page);
});

await test('everything is reached with the keyboard', async () => {
	const page = await newPage();
	await view(page, '#/jobs?q=web-ok', 'text=web-ok');
	// From the first control: after the last one the focus would leave the document.
	await page.focus('.skip');
	const seen = [], wanted = ['Overview', 'Timeline', 'Act on all matching…', 'web-ok', 'Name'], left = () => wanted.filter(w => !seen.some(s => s.startsWith(w)));
	for (let i = 0; i < 60 && left().length; i++) {
		await page.keyboard.press('Tab');
		seen.push(await page.evaluate(() => (document.activeElement.textContent || document.activeElement.getAttribute('aria-label') || document.activeElement.type || '').trim().slice(0, 30)));
	}
	assert(!left().length, left().join(', ') + ' was not reached: ' + seen.join(', '));
	await page.locator('a:text-is("web-ok")').focus();
	await page.keyboard.press('Enter');
	await page.waitForSelector('text=Next runs');
	await page.getByRole('button', {name: 'Pause…'}).focus();
	await page.keyboard.press('Enter');
	await page.waitForSelector('dialog');
	await page.keyboard.press('Escape');
	await until(async () => await page.locator('dialog').count() === 0, 'the dialog closes');
	const head = await page.$('.head');
	await page.getByRole('button', {name: 'Edit…'}).first().focus();
	api('POST', `jobs/${made.ok.id}/run`, {});
	await until(async () => !await head.evaluate(e => e.isConnected), 'the page shows the new run', 30000);
	assert(await page.evaluate(() => document.activeElement.textContent) === 'Edit…', 'the focus was lost when the page changed');
	await page.keyboard.press('/');
	await page.waitForSelector('input[type=search]');
	await view(page, '#/timeline?span=3600000', 'canvas');
	await page.focus('canvas');
	await page.keyboard.press('+');
	await until(() => /span=1800000/.test(page.url()), 'zoomed in');
	await page.keyboard.press('ArrowLeft');
	await until(() => /at=\d+/.test(page.url()), 'moved');
	clean(page);
});

await test('a call shows its request, and a running command its progress', async () => {
	const page = await newPage();
	const call = api('POST', 'jobs', {name: 'web-call', schedule: ['manual'], http: 'POST', url: 'https://jobs.invalid/hook?a=<b>'});
	await view(page, '#/jobs/' + api('POST', 'jobs', {name: 'web-quotes', schedule: ['manual'], command: ['sh', '-c', 'echo "it\'s"', '']}).id, 'text=Next runs');
	assert((await page.innerText('main')).includes(`sh -c 'echo "it'\\''s"' ''`), 'the words of the command are not quoted for the shell');
	await page.fill('.zone', 'Asia/Tokyo');
	await page.keyboard.press('Enter');
	const soon = new Date(Date.now() + 3600e3 * 24);
	const later = api('POST', 'jobs', {name: 'web-later', schedule: [soon.toISOString().slice(0, 19) + 'Z'], script: 'true'});
	await view(page, '#/jobs/' + later.id, 'text=Next runs');
	const tokyo = new Date(Math.floor(soon / 1000) * 1000 + 9 * 3600e3).toISOString().slice(0, 19).replace('T', ' ');
	assert((await page.innerText('section:has(h2:text("Why"))')).includes(tokyo), 'the sentence has not the chosen zone: ' + tokyo);
	await view(page, '#/jobs/' + call.id, 'text=Next runs');
	assert(/HTTP call/.test(await page.innerText('main')) && (await page.innerText('main')).includes('POST https://jobs.invalid/hook?a=<b>'), 'the request');
	const job = api('POST', 'jobs', {name: 'web-steps', schedule: ['manual'], heartbeat: 300, script: 'echo "jobsched:progress=42 copying <b>files</b>" >&$JOBSCHED_NOTIFY_FD; sleep 120'});
	const run = api('POST', `jobs/${job.id}/run`, {});
	await view(page, '#/runs/' + run.id, 'text=Timing');
	await until(async () => await page.locator('progress').count() && /42 % copying <b>files<\/b>/.test(await page.innerText('main')), 'the progress', 60000);
	await until(async () => /echo/.test(await page.innerText('main')), 'the command');
	await shoot(page, out + '/progress-1280-light.png');
	await view(page, '#/runs', 'text=42 %');
	api('POST', `runs/${run.id}/cancel`, {});
	// The second report follows within ten percent and has no event.
	const next = api('POST', 'jobs', {name: 'web-words', schedule: ['manual'], heartbeat: 300, cwd: out,
		script: 'echo "jobsched:progress=50 first words" >&$JOBSCHED_NOTIFY_FD; until [ -e words ]; do sleep 0.1; done; echo "jobsched:progress=51 second words" >&$JOBSCHED_NOTIFY_FD; sleep 120'});
	fs.rmSync(out + '/words', {force: true});
	const words = api('POST', `jobs/${next.id}/run`, {});
	await view(page, '#/runs/' + words.id, 'text=50 %');
	await page.waitForTimeout(5000); // events of the start are over
	fs.writeFileSync(out + '/words', '');
	await page.waitForSelector('text=51 %');
	api('POST', `runs/${words.id}/cancel`, {});
	clean(page);
});

await test('the timeline counts more runs than it reads', async () => {
	const page = await newPage();
	await page.route('**/v1/density*', async route => {
		const q = new URL(route.request().url()).searchParams, n = Number(q.get('intervals'));
		await route.fulfill({json: {intervals: Array.from({length: n / 2}, (x, i) => ({interval: i, runs: 1000 + i, failed: i % 7})), next_cursor: null}});
	});
	const asked = [];
	page.on('request', r => { if (/\/v1\/runs\?/.test(r.url())) asked.push(r.url()); });
	for (const [span, name] of [[60e3, 'minute'], [31 * 86400e3, 'month']]) {
		asked.length = 0;
		await page.goto('about:blank');
		await view(page, '#/timeline?span=' + span, 'text=All runs are counted');
		assert(asked.length === 12 && asked.every(u => /limit=125/.test(u)), name + ': ' + asked.length + ' parts were read');
		const n = Number((await page.locator('section:has(h2:text("Peaks")) tbody tr').first().locator('td').nth(2).innerText()).replace(/\D/g, ''));
		assert(n > 5000, name + ': the peak has ' + n);
		for (const colorScheme of ['light', 'dark'])
			for (const [width, height] of [[360, 780], [1280, 860], [2560, 1400]]) {
				await colours(page, colorScheme);
				await page.setViewportSize({width, height});
				await page.waitForTimeout(200);
				assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name + ' is wider than ' + width);
				await shoot(page, `${out}/density-${name}-${width}-${colorScheme}.png`);
			}
	}
	clean(page);
});

await test('a viewer sees everything and is offered no change', async () => {
	const page = await newPage({}, viewer);
	await view(page, '#/jobs/' + made.ok.id, 'text=Next runs');
	assert(await page.getByRole('button', {name: 'Run now'}).count() === 0, 'there is a button');
	const status = await page.evaluate(async id => (await fetch('/v1/jobs/' + id + '/run', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})).status, made.ok.id);
	assert(status === 403, 'status ' + status);
	clean(page);
});

await test('zone and colours are kept, and times follow the zone', async () => {
	const page = await newPage({timezoneId: 'America/New_York'});
	await view(page, '#/jobs/' + made.ok.id, 'text=Next runs');
	await page.fill('.zone', 'Asia/Tokyo');
	await page.keyboard.press('Enter');
	await page.getByLabel('colours').selectOption('dark');
	await page.reload();
	await page.waitForSelector('text=Next runs');
	assert(await page.inputValue('.zone') === 'Asia/Tokyo', 'the zone');
	assert(await page.evaluate(() => getComputedStyle(document.body).backgroundColor) === 'rgb(18, 22, 28)', 'the colours');
	clean(page);
});

await test('numbers beyond 2^53 stay exact', async () => {
	const page = await newPage();
	const r = await page.evaluate(async () => {
		const {parse} = await import('/ui/api.js');
		return parse('{"id":9223372036854775807,"a":[-9007199254740993],"s":"12345678901234567890\\"9223372036854775807","f":0.12345678901234567,"n":5}');
	});
	assert(r.id === '9223372036854775807' && r.a[0] === '-9007199254740993' && r.s === '12345678901234567890"9223372036854775807' && r.n === 5 && Math.abs(r.f - 0.1234567) < 1e-6, JSON.stringify(r));
});

console.log('1..' + n);
await browser.close();
process.exit(bad ? 1 : 0);

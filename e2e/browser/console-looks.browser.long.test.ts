import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser, isWider } from './chromium.ts'
import { checkPage, checkScreen, choose, pick, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let project: string
let agent: string
let done: string
let other: string

/** Maximum sum of unexpected layout shifts of a page. Browsers rate up to 0.1 as good; this is a fifth of that. */
const shiftMax = 0.02

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await post('/api/v1/projects', { name: 'shop' })).id)
  const script = [{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'It is **noon**.' }]
  const config = { model: 'builtin/script', tools: ['current_time'], system_prompt: JSON.stringify(script) }
  agent = (await post(`/api/v1/projects/${project}/agents`, { name: 'clerk', config })).id
  const bad = await post(`/api/v1/projects/${project}/agents`, { name: 'lame', config: { model: 'openai/gpt-5' } })
  done = await run(agent, 'What time is it?', 'completed')
  other = await run(agent, 'What time is it now?', 'completed')
  await run(bad.id, 'Read this.', 'failed')
})

after(() => cadre?.stop())

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

async function run(agent_id: string, input: string, status: string): Promise<string> {
  const { id } = await post(`/api/v1/projects/${project}/agents/${agent_id}/tasks`, { input })
  await eventually(
    async () => (await cadre.send('GET', `/api/v1/projects/${project}/tasks/${id}`)).body.status === status,
    120_000,
  )
  return id
}

/** Sets a preference, and waits until the service has stored it. */
async function choosePreference(page: Page, label: string, choice: string, by: typeof pick = choose): Promise<void> {
  const saved = page.waitForResponse(
    (answer) => answer.url().endsWith('/auth/preferences') && answer.request().method() === 'PUT',
  )
  await by(page, label, choice)
  assert.equal((await saved).status(), 200)
}

test(
  'a preference set in one browser applies in another, there from the first frame of the next page',
  inBrowser,
  async () => {
    const desk = await cadre.open('/settings/preferences')
    await choosePreference(desk, 'Theme', 'Dark')
    await choosePreference(desk, 'Dates and numbers', 'Nov 24, 2026, 02:08 PM · 1,234.5')
    const other = await cadre.open(`/p/${project}/agents/${agent}`)
    await other.locator('html[data-theme=dark]').waitFor()
    await other
      .getByText(/\w{3} \d\d, 2026, \d\d:\d\d:\d\d [AP]M/)
      .first()
      .waitFor()
    // The request is delayed, so that only the browser's copy determines how the page looks.
    await other.route('**/auth/preferences', () => {})
    await other.reload()
    await other.locator('html[data-theme=dark]').waitFor()
    for (const page of [desk, other]) checkPage(page)
    await choosePreference(desk, 'Theme', 'As the system')
    await choosePreference(desk, 'Dates and numbers', '24 Nov 2026, 14:08 · 1,234.5')
    for (const page of [desk, other]) await page.context().close()
  },
)

test('a preference that the service cannot store applies in this browser, and a note says so', inBrowser, async () => {
  const page = await cadre.open('/settings/preferences', { allowed: /503/ })
  await page.route('**/auth/preferences', (route) =>
    route.request().method() === 'PUT' ? route.fulfill({ status: 503, body: '{}' }) : route.continue(),
  )
  await choose(page, 'Theme', 'Dark')
  await page.locator('html[data-theme=dark]').waitFor()
  await page.getByText('The preference was saved in this browser only').first().waitFor()
  checkPage(page)
  await page.context().close()
})

test(
  'the time zone and the date format of a user apply on the pages of a task and of an agent',
  inBrowser,
  async () => {
    const page = await cadre.open('/settings/preferences')
    await choosePreference(page, 'Time zone', 'Asia/Kolkata', pick)
    await choosePreference(page, 'Dates and numbers', '2026-11-24 14:08 · 1 234,5')
    const { body: task } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${done}`)
    const { body: steps } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${done}/steps`)
    const there = (at: string): string => new Date(Date.parse(at) + 5.5 * 3_600_000).toISOString()
    const moment = (at: string): string => there(at).slice(0, 19).replace('T', ' ')
    await page.goto(`/p/${project}/tasks/${done}`)
    await page
      .locator(`time[title="${moment(task.created_at)} Asia/Kolkata"]`)
      .first()
      .waitFor()
    await page.getByText(there(steps.steps[0].started_at).slice(11, 23)).first().waitFor()
    const { body: shown } = await cadre.send('GET', `/api/v1/projects/${project}/agents/${agent}`)
    await page.goto(`/p/${project}/agents/${agent}`)
    await page
      .getByText(moment(shown.agent?.created_at ?? shown.created_at))
      .first()
      .waitFor()
    checkPage(page)
    await page.context().close()
  },
)

test(
  'the page of a completed task begins with its answer, and that of a failed task says once what failed and what to do',
  inBrowser,
  async () => {
    const page = await cadre.open(`/p/${project}/tasks/${done}`)
    const answer = page.getByRole('region', { name: 'Answer' })
    await answer.locator('strong', { hasText: 'noon' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Cancel' }).count(), 0)
    await page.locator('[data-truth]').getByText('builtin/script').waitFor()
    await page.getByText('Arguments and result').first().click()
    await page.getByRole('region', { name: 'Result of current_time' }).getByText('time_zone').waitFor()
    await checkScreen(page, 'task-answer')
    await page.goto(`/p/${project}`)
    await page.getByRole('link', { name: '1 failed task of lame with provider_not_configured' }).click()
    await page.getByRole('search').getByText('provider_not_configured').waitFor()
    await page.getByRole('link', { name: 'Read this.' }).click()
    await page.getByText('What to do:').waitFor()
    assert.equal(await page.getByText('is not configured').count(), 1)
    await checkScreen(page, 'task-failed')
    await page.getByRole('region', { name: 'Answer' }).getByRole('link', { name: 'Model providers' }).click()
    await page.getByRole('heading', { level: 1, name: 'Model providers' }).waitFor()
    await page.context().close()
  },
)

test('a user sets a name and a picture, and the account button has the new initials', inBrowser, async () => {
  const page = await cadre.open('/settings/preferences')
  const picture = page.getByLabel('Address of your picture')
  const save = page.getByRole('button', { name: 'Save', exact: true })
  await page.getByLabel('Name', { exact: true }).fill('Ada King')
  await picture.fill('javascript:alert(1)')
  await page.getByText('Give an http or https address.').waitFor()
  assert.ok(await save.isDisabled())
  await picture.fill('https://example.com/ada.png')
  await save.click()
  await page.getByRole('button', { name: 'Account of Ada King' }).locator('[data-initials=AK]').waitFor()
  const { body: user } = await cadre.send('GET', '/api/v1/auth/user')
  assert.deepEqual([user.name, user.avatar_url], ['Ada King', 'https://example.com/ada.png'])
  checkPage(page)
  await page.context().close()
})

test('two tasks are chosen with the keyboard alone and compared side by side', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/tasks`)
  await page.getByRole('link', { name: 'What time is it now?' }).waitFor()
  for (const name of ['What time is it?', 'What time is it now?']) {
    await page.getByRole('checkbox', { name: `Select ${name}` }).focus()
    await page.keyboard.press('Space')
  }
  await page.getByRole('link', { name: 'Compare' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('region', { name: 'Difference of the inputs' }).getByText('What time is it now?').waitFor()
  await page.getByText('Both are the same.').waitFor()
  await page.getByRole('region', { name: 'Answer' }).locator('strong', { hasText: 'noon' }).waitFor()
  await checkScreen(page, 'tasks-compared')
  checkPage(page)
  await page.context().close()
})

test('pages have one heading and a title that names them, also for what does not exist', inBrowser, async () => {
  const page = await cadre.open('/settings/preferences', { allowed: /404/ })
  for (const [path, title] of [
    [`/p/${project}/approvals`, 'Approvals'],
    [`/p/${project}/tool-calls`, 'Tool calls'],
    [`/p/${project}/tasks/${done}`, 'What time is it?'],
    [`/p/${project}/tasks/task_00000000000000000000000000`, 'Task not found'],
    [`/p/${project}/agents/agent_00000000000000000000000000`, 'Agent not found'],
    [`/p/${project}/tools/tool_00000000000000000000000000`, 'Tool not found'],
    ['/p/999999/agents', 'Project not found'],
    ['/nowhere', 'Page not found'],
  ] as const) {
    await page.goto(path)
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
    assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, path)
    assert.equal(await page.title(), `${title} · Cadre`)
  }
  checkPage(page)
  await page.context().close()
})

test('a very long word in a name, a description or an input widens no page on a telephone', inBrowser, async () => {
  const word = 'w'.repeat(200)
  const { id } = await post(`/api/v1/projects/${project}/agents`, {
    name: `long-${word.slice(0, 80)}`,
    description: word,
    config: { model: 'builtin/echo' },
  })
  const task = await run(id, word, 'completed')
  const page = await cadre.open(`/p/${project}/agents/${id}`, { screen: 'telephone' })
  for (const path of [`/agents/${id}`, `/agents`, `/tasks/${task}`, `/tasks`, '']) {
    await page.goto(`/p/${project}${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForSelector('.animate-pulse', { state: 'detached' })
    assert.equal(await isWider(page), false, path)
    const heading = page.getByRole('heading', { level: 1 })
    assert.ok(await heading.evaluate((one) => one.scrollWidth <= one.clientWidth), `the heading of ${path} is cut off`)
  }
  checkPage(page)
  await page.context().close()
})

test('on a telephone the page of a task that waits for an approval has room for its steps', inBrowser, async () => {
  const script = [{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Noon.' }]
  const config = { model: 'builtin/script', tools: ['current_time'], tool_policies: { current_time: 'ask' } }
  const { id } = await post(`/api/v1/projects/${project}/agents`, {
    name: 'asker',
    config: { ...config, system_prompt: JSON.stringify(script) },
  })
  const task = await run(id, 'What time is it?', 'waiting')
  const page = await cadre.open(`/p/${project}/tasks/${task}`, { screen: 'telephone' })
  await page.getByRole('button', { name: 'Approve', exact: true }).waitFor()
  const transcript = page.getByText('Arguments and result')
  await transcript.scrollIntoViewIfNeeded()
  const tabs = (await page.getByRole('group', { name: 'View' }).boundingBox())!
  const shown = (await transcript.boundingBox())!
  assert.ok(shown.y > tabs.y + tabs.height, 'it is below the tabs')
  assert.ok(844 - tabs.y > 400, `the steps begin at ${tabs.y} of 844`)
  checkPage(page)
  await page.context().close()
})

test('a button that cannot be used says why when it is pressed, also to who cannot hover', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}`, { role: 'viewer', screen: 'telephone' })
  const button = page.getByRole('button', { name: 'Pause all' }).and(page.locator('[aria-disabled=true]'))
  await page.getByText('Service operational').waitFor()
  const reason = (await button.getAttribute('title')) ?? ''
  await button.tap({ force: true })
  await page.locator('[data-toast]').getByText(reason).waitFor()
  await button.focus()
  await page.keyboard.press('Enter')
  // Pressed again it says so again, and not twice.
  assert.equal(await page.locator('[data-toast]').count(), 1)
  assert.equal(await page.getByRole('dialog').and(page.locator(':not([data-toast])')).count(), 0)
  checkPage(page)
  await page.context().close()
})

test('a note above the forms of agents and tools tells a viewer who may save them', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/agents/new`, { role: 'viewer' })
  for (const path of ['/agents/new', `/agents/${agent}/edit`, '/tools/new']) {
    await page.goto(`/p/${project}${path}`)
    await page.getByRole('note').getByText('ask an owner or administrator').waitFor()
  }
  checkPage(page)
  await page.context().close()
})

test('the actions on selected agents stay visible at the end of the list', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/agents`, { screen: 'telephone' })
  await page.setViewportSize({ width: 390, height: 420 })
  await page.getByRole('checkbox', { name: 'Select clerk' }).check()
  await page.getByRole('navigation', { name: 'Pages of agents' }).scrollIntoViewIfNeeded()
  const pause = (await page.getByRole('toolbar').getByRole('button', { name: 'Pause' }).boundingBox())!
  assert.ok(pause.y > 0 && pause.y + pause.height < 420, `it is at ${pause.y}`)
  checkPage(page)
  await page.context().close()
})

test('the page of a remote agent names the queue of its workers', inBrowser, async () => {
  const runtime = { kind: 'remote', queue: 'meters' }
  const { id } = await post(`/api/v1/projects/${project}/agents`, { name: 'meter-reader', config: { runtime } })
  const page = await cadre.open(`/p/${project}/agents/${id}`)
  await page.getByText('your own workers, queue meters').waitFor()
  checkPage(page)
  await page.context().close()
})

test('on a telephone a card of an agent shows its model and leaves out its creation time', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/agents`, { screen: 'telephone' })
  const card = page.locator(`[data-row="${agent}"]`)
  await card.getByRole('link', { name: 'clerk' }).waitFor()
  assert.ok(await card.locator('[data-column=model]').isVisible())
  assert.equal(await card.locator('[data-column=created]').isVisible(), false)
  const [label, value] = await card
    .locator('[data-column=model] > *')
    .evaluate((fact) => [fact.parentElement!.getBoundingClientRect().top, fact.getBoundingClientRect().top] as const)
  assert.ok(value - label > 10, 'the label stands above its fact')
  checkPage(page)
  await page.context().close()
})

test('no page of a project shifts its layout while it loads, with entries and without', inBrowser, async () => {
  const { id: empty } = await post('/api/v1/projects', { name: 'empty' })
  const { id: thread } = await post(`/api/v1/projects/${project}/threads`, { agent_id: agent })
  const lists = ['', '/agents', '/tasks', '/tools', '/credentials', '/schedules', '/triggers', '/files', '/threads']
  const others = ['/approvals', '/tool-calls', '/logs', '/metrics', '/usage', '/playground', '/connect']
  const page = await cadre.open('/settings/preferences')
  const compared = `/tasks/compare?left=${done}&right=${other}`
  const pages = [compared, `/tasks/${done}`, `/tasks/${done}?view=attempts`, `/agents/${agent}`, `/threads/${thread}`]
  for (const path of [
    ...[...lists, ...others, ...pages].map((path) => `/p/${project}${path}`),
    ...[...lists, ...others].map((path) => `/p/${empty}${path}`),
  ]) {
    await page.goto(path)
    await page.getByRole('heading', { level: 1 }).first().waitFor()
    await page.waitForSelector('.animate-pulse', { state: 'detached' })
    const shift: number = await page.evaluate(`new Promise((done) => {
      let sum = 0
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) sum += entry.value
      }).observe({ type: 'layout-shift', buffered: true })
      requestAnimationFrame(() => requestAnimationFrame(() => done(sum)))
    })`)
    assert.ok(shift <= shiftMax, `${path} shifts by ${shift}`)
  }
  checkPage(page)
  await page.context().close()
})

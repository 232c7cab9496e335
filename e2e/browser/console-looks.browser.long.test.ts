import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, choose, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let project: string
let agent: string
let done: string
let failed: string

/** Shifts of the layout that no user caused, summed up as browsers do. Up to 0.1 counts as good for users; a fifth of that is ours. */
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
  await run(agent, 'What time is it now?', 'completed')
  failed = await run(bad.id, 'Read this.', 'failed')
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

test(
  'the zone and the form that a user chooses hold on every page with a time, on a task as on an agent',
  inBrowser,
  async () => {
    const page = await cadre.open('/settings/preferences')
    await choose(page, 'Times are shown in', 'UTC')
    await choose(page, 'Dates and numbers', '2026-11-24 14:08 · 1 234,5')
    const { body: task } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${done}`)
    const { body: steps } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${done}/steps`)
    const moment = (at: string): string => at.slice(0, 19).replace('T', ' ')
    await page.goto(`/p/${project}/tasks/${done}`)
    await page
      .locator(`time[title="${moment(task.created_at)} UTC"]`)
      .first()
      .waitFor()
    await page.getByText(steps.steps[0].started_at.slice(11, 23)).first().waitFor()
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
  'a task that ended begins with its answer, and one that failed says its error once and what to do',
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
    await page.goto(`/p/${project}/tasks/${failed}`)
    await page.getByText('What to do:').waitFor()
    assert.equal(await page.getByText('is not configured').count(), 1)
    await checkScreen(page, 'task-failed')
    await page.getByRole('region', { name: 'Answer' }).getByRole('link', { name: 'Edit the agent' }).click()
    await page.waitForURL(/\/edit$/)
    await page.context().close()
  },
)

test('a user gives a name and the address of a picture, and the bar shows the initials', inBrowser, async () => {
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

test('a card of a telephone leaves out what the page of its row has', inBrowser, async () => {
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

test('no page of a project jumps while it loads, with entries and without', inBrowser, async () => {
  const { id: empty } = await post('/api/v1/projects', { name: 'empty' })
  const { id: thread } = await post(`/api/v1/projects/${project}/threads`, { agent_id: agent })
  const lists = ['', '/agents', '/tasks', '/tools', '/credentials', '/schedules', '/triggers', '/files', '/threads']
  const others = ['/approvals', '/tool-calls', '/logs', '/metrics', '/usage', '/playground', '/connect']
  const page = await cadre.open('/settings/preferences')
  const pages = [`/tasks/${done}`, `/tasks/${done}?view=attempts`, `/agents/${agent}`, `/threads/${thread}`]
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

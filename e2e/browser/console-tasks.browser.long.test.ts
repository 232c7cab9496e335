import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../../server/test/harness.ts'
import { isLongRun } from '../../server/test/long-run.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, choose, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let project: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await post('/api/v1/projects', { name: 'shop' })).id)
})

after(() => cadre?.stop())

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

function agent(name: string, script: object[], config: object = {}): Promise<any> {
  const model = {
    model: 'builtin/script',
    tools: ['current_time', 'run_javascript'],
    system_prompt: JSON.stringify(script),
  }
  return post(`/api/v1/projects/${project}/agents`, { name, config: { ...model, ...config } })
}

async function task(agent_id: string, input: unknown): Promise<string> {
  return (await post(`/api/v1/projects/${project}/agents/${agent_id}/tasks`, { input })).id
}

async function taskIs(id: string, status: string): Promise<any> {
  return eventually(async () => {
    const { body } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${id}`)
    return body.status === status && body
  }, 120_000)
}

const asking = [
  { text: 'Let me **compute** it.\n\n- first\n- second\n\n<b onclick="alert(1)">bold</b>' },
  { tool_calls: [{ name: 'run_javascript', arguments: { code: '6 * 7' } }] },
  { text: 'It is {{tool_result}}.' },
]
const withPolicy = { tool_policies: { run_javascript: 'ask' } }

test('a person edits and approves a call on a telephone, and the edited call is made', inBrowser, async () => {
  const careful = await agent('careful', asking, withPolicy)
  const id = await task(careful.id, 'What is six times seven?')
  await taskIs(id, 'waiting')
  const page = await cadre.open(`/p/${project}/approvals`, { screen: 'telephone' })
  const card = page.getByRole('article', { name: 'Approval of run_javascript' })
  await card.waitFor()
  await card.getByText('It only reads.').waitFor()
  await card.getByRole('checkbox', { name: /^If approved, always let careful call/ }).check()
  await checkScreen(page, 'approvals')

  await card.getByRole('button', { name: 'Edit and approve' }).tap()
  const field = card.getByLabel('Arguments, as JSON')
  await field.fill('{"code": ')
  await card.getByRole('button', { name: 'Approve as edited' }).tap()
  await card.getByRole('alert').waitFor()
  await field.fill('{"code": "6 * 8"}')
  await checkScreen(page, 'approvals-edit')
  await card.getByRole('button', { name: 'Approve as edited' }).tap()
  await page.getByText('No pending approvals').waitFor()

  assert.equal((await taskIs(id, 'completed')).output.content, 'It is 48.')
  const { body: changed } = await cadre.send('GET', `/api/v1/projects/${project}/agents/${careful.id}`)
  assert.deepEqual(changed.config.tool_policies, { run_javascript: 'auto' })
  // The next task is not held up, so it ends.
  const next = await task(careful.id, 'And what is it now?')
  assert.equal((await taskIs(next, 'completed')).output.content, 'It is 42.')
  checkPage(page)
  await page.context().close()
})

test('a person denies a call on the page of its task, and the model reads the reason', inBrowser, async () => {
  const refused = await agent('refused', asking, withPolicy)
  const id = await task(refused.id, 'What is six times nine?')
  await taskIs(id, 'waiting')
  const page = await cadre.open(`/p/${project}/tasks/${id}`)
  const card = page.getByRole('article', { name: 'Approval of run_javascript' })
  await card.waitFor()
  await checkScreen(page, 'task-approval')
  await card.getByRole('button', { name: 'Deny' }).click()
  await page.locator('textarea:focus').waitFor()
  await card.getByLabel('Reason, shown to the model').fill('We do not multiply here.')
  await card.getByRole('button', { name: 'Deny the call' }).click()
  await card.waitFor({ state: 'detached' })
  const { output } = await taskIs(id, 'completed')
  assert.match(output.content, /We do not multiply here/)
  await page.getByText('The task is completed.', { exact: true }).first().waitFor()
  await page.getByText('<b onclick="alert(1)">bold</b>').waitFor()
  checkPage(page)
  await page.context().close()
})

test(
  'the views of a task fit every screen, and a link opens a step from which the task can be retried',
  inBrowser,
  async () => {
    const busy = await agent('busy', [
      ...asking.slice(0, 2),
      { tool_calls: [{ name: 'run_javascript', arguments: { code: 'throw new Error("no such order")' } }] },
      { text: 'It is {{tool_result}}.' },
    ])
    const id = await task(busy.id, 'Compute, and fail once.')
    const { usage } = await taskIs(id, 'completed')
    assert.ok(usage.steps >= 4)
    const path = `/p/${project}/tasks/${id}`
    const page = await cadre.open(path)
    await page.getByText('The task is completed.', { exact: true }).first().waitFor()
    await checkScreen(page, 'task-transcript')

    await page.getByRole('button', { name: 'Waterfall' }).click()
    await page.getByRole('region', { name: 'Steps over time' }).getByRole('button').nth(1).click()
    await page.getByRole('complementary', { name: 'Step 1' }).waitFor()
    assert.match(page.url(), /step=1/)
    await checkScreen(page, 'task-waterfall-step')

    // A part of the time is drawn over the axis, or chosen by keys; the address keeps it.
    const bars = page.locator('[data-bar]')
    assert.equal(await bars.count(), 5)
    const axis = (await page.locator('[data-brush]').boundingBox())!
    // A place on the axis is the same moment as below it.
    const lane = (await bars.first().locator('..').boundingBox())!
    assert.deepEqual([axis.x, axis.width], [lane.x, lane.width])
    await page.mouse.move(axis.x + 1, axis.y + 10)
    await page.mouse.down()
    await page.mouse.move(axis.x + axis.width * 0.02, axis.y + 10, { steps: 3 })
    await page.mouse.up()
    await page.waitForURL(/span=\d+-\d+/)
    await page.getByTitle('Show the whole time').waitFor()
    await checkScreen(page, 'task-waterfall-zoom')
    assert.ok((await bars.count()) < 5, 'what lies outside is not drawn')
    await page.getByTitle('Show the whole time').click()
    await page.waitForURL((url) => !url.searchParams.has('span'))
    await page.getByRole('button', { name: 'Zoom in' }).focus()
    await page.keyboard.press('Enter')
    await page.waitForURL(/span=\d+-\d+/)
    const begins = (url: URL) => Number(/span=(\d+)-/.exec(url.search)?.[1])
    for (let from; (from = begins(new URL(page.url()))) > 0;) {
      await page.getByRole('button', { name: 'Earlier' }).click()
      await page.waitForURL((url) => begins(url) < from)
    }
    await page.getByRole('button', { name: 'Later' }).click()
    await page.waitForURL((url) => begins(url) > 0)
    await page.getByRole('button', { name: 'Zoom out' }).click()
    await page.waitForURL((url) => !url.searchParams.has('span'))

    const linked = await cadre.open(new URL(page.url()).pathname + new URL(page.url()).search)
    const step = linked.getByRole('complementary', { name: 'Step 1' })
    await step.getByRole('region', { name: 'Output' }).waitFor()
    await step.getByRole('button', { name: 'Retry from this step' }).click()
    await linked.waitForURL((url) => url.pathname !== path)
    await linked.getByText('Retry of').waitFor()
    checkPage(linked)
    await linked.context().close()

    // What a step gave is found by a part of it; the address keeps the words.
    await page.getByLabel('Text in steps').fill('NO SUCH ORDER')
    await page.waitForURL(/find=NO/)
    const steps = page.getByRole('region', { name: 'Steps over time' }).getByRole('button')
    const { body: journal } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${id}/steps`)
    const visible = journal.steps.filter((one: object) => /no such order/i.test(JSON.stringify(one)))
    assert.ok(visible.length > 0 && visible.length < usage.steps)
    await page.getByText(`${visible.length} of ${journal.steps.length} steps`, { exact: true }).waitFor()
    assert.equal(await steps.count(), visible.length)
    await page.getByLabel('Text in steps').fill('')
    await page.waitForURL((url) => !url.searchParams.has('find'))

    // With another input it is another task, which names this one.
    const edited = await cadre.open(path)
    await edited.getByRole('button', { name: 'Edit and run again' }).click()
    const dialog = edited.getByRole('dialog', { name: 'Edit and run again' })
    await checkScreen(edited, 'task-edit')
    await dialog.getByLabel('Input').fill('Compute something else.')
    await dialog.getByRole('button', { name: 'Run', exact: true }).click()
    await edited.waitForURL((url) => url.pathname !== path)
    await edited.getByRole('heading', { name: 'Compute something else.' }).waitFor()
    await edited.getByRole('link', { name: 'Edit of a task' }).click()
    await edited.waitForURL((url) => url.pathname === path)
    checkPage(edited)
    await edited.context().close()

    // On a telephone a step is a separate page, with a way back.
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'Close the step' }).click()
    await page.setViewportSize({ width: 1440, height: 900 })
    for (const view of ['Events', 'Attempts']) {
      await page.getByRole('button', { name: view, exact: true }).click()
      await page.getByRole('region', { name: view }).waitFor()
      await checkScreen(page, `task-${view.toLowerCase()}`)
    }
    await page.context().close()
  },
)

test('large data of a task is a tree that keys open in parts, and it is copied whole', inBrowser, async () => {
  const answering = await agent('answering', [], {
    model: 'builtin/echo',
    tools: [],
    output_schema: { type: 'object' },
  })
  const data = {
    orders: Array.from({ length: 5000 }, (_, number) => ({ number })),
    note: 'n'.repeat(20_000),
    is_open: true,
    none: null,
  }
  const id = await task(answering.id, JSON.stringify(data))
  assert.deepEqual((await taskIs(id, 'completed')).output.data, data)
  const page = await cadre.open(`/p/${project}/tasks/${id}`)
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: cadre.url })
  const tree = page.getByRole('region', { name: 'Data', exact: true })
  const orders = tree.getByRole('button', { name: 'orders 5,000 items' })
  await orders.and(page.locator('[aria-expanded=false]')).waitFor()
  await checkScreen(page, 'task-data')
  await orders.press('Enter')
  await tree.getByText('99', { exact: true }).waitFor()
  assert.equal(await tree.getByText('100', { exact: true }).count(), 0)
  await tree.getByRole('button', { name: 'Show 500 more' }).click()
  await tree.getByText('599', { exact: true }).waitFor()
  assert.equal(await tree.getByText('600', { exact: true }).count(), 0)
  await tree.getByText('of 4,400').waitFor()
  await orders.press('Enter')
  await tree.getByRole('button', { name: '599 1 member' }).waitFor({ state: 'detached' })

  const all = tree.getByRole('button', { name: 'Show all 20,000 characters' })
  assert.equal(await tree.getByText(data.note).count(), 0)
  await all.click()
  await tree.getByText(data.note).waitFor()
  await tree.getByRole('button', { name: 'Show less' }).click()
  await all.waitFor()
  await page.getByRole('button', { name: 'Copy as JSON' }).click()
  await eventually(async () => (await page.evaluate('navigator.clipboard.readText()')) !== '')
  assert.deepEqual(JSON.parse(await page.evaluate('navigator.clipboard.readText()')), data)
  await page.getByText('As text', { exact: true }).click()
  await page.getByRole('region', { name: 'Text', exact: true }).getByText('"number": 0').waitFor()
  await checkScreen(page, 'task-data-text')
  checkPage(page)
  await page.context().close()
})

test('the page of a task shows its input by its type, and an edited object is run again', inBrowser, async () => {
  const typed = await agent('typed', [], {
    model: 'builtin/echo',
    tools: [],
    input_schema: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
  })
  const id = await task(typed.id, { city: 'Oslo', days: [1, 2] })
  await taskIs(id, 'completed')
  const path = `/p/${project}/tasks/${id}`
  const page = await cadre.open(path, { allowed: /400/ })
  const input = page.getByRole('region', { name: 'Input', exact: true })
  await input.getByText('"Oslo"').waitFor()
  await input.getByRole('button', { name: 'days 2 items' }).and(page.locator('[aria-expanded=true]')).waitFor()
  await checkScreen(page, 'task-input-object')
  await page.getByRole('button', { name: 'Edit and run again' }).click()
  const dialog = page.getByRole('dialog', { name: 'Edit and run again' })
  const field = dialog.getByLabel('Input, as JSON')
  assert.deepEqual(JSON.parse(await field.inputValue()), { city: 'Oslo', days: [1, 2] })
  const run = dialog.getByRole('button', { name: 'Run', exact: true })
  await field.fill('{"city": ')
  await run.click()
  await dialog.getByText('This isn’t valid JSON').waitFor()
  // What the schema does not allow the service refuses, and the text stays.
  await field.fill('{"city": 7}')
  await run.click()
  await dialog.getByRole('alert').getByRole('listitem').getByText('input.city').waitFor()
  // The fault is said once, however many words the message of the service has.
  assert.equal(await dialog.getByRole('alert').getByText('must be string').count(), 1)
  await checkScreen(page, 'task-edit-object')
  await field.fill('{"city": "Bergen"}')
  await run.click()
  await page.waitForURL((url) => url.pathname !== path)
  await page.getByRole('region', { name: 'Input', exact: true }).getByText('"Bergen"').waitFor()
  const { input: given } = await taskIs(new URL(page.url()).pathname.split('/').at(-1)!, 'completed')
  assert.deepEqual(given, { city: 'Bergen' })

  const plain = await agent('plain', [], { model: 'builtin/echo', tools: [] })
  const parts = ['Read the first part.', 'Then the second.'].map((text) => ({ type: 'text', text }))
  const said = await task(plain.id, [{ role: 'user', content: parts }])
  await taskIs(said, 'completed')
  await page.goto(`/p/${project}/tasks/${said}`)
  await page.getByRole('heading', { name: 'Read the first part.' }).waitFor()
  await page.getByRole('region', { name: 'Transcript' }).getByText('Then the second.').first().waitFor()
  await checkScreen(page, 'task-input-parts')
  checkPage(page)
  await page.context().close()
})

test(
  'every view of a task shows which steps a compaction replaced, and reasoning is folded above its answer',
  inBrowser,
  async () => {
    const thinker = await agent(
      'thinker',
      [
        {
          repeat: 4,
          steps: [
            { reasoning: 'The **clock** decides.' },
            { text: 'Looking.' },
            { tool_calls: [{ name: 'current_time', arguments: {} }] },
          ],
        },
        { reasoning: 'Now it is known.' },
        { text: 'It is noon.' },
      ],
      { context: { compact_at_tokens: 5, keep_last_steps: 1 } },
    )
    const id = await task(thinker.id, 'Look at the clock.')
    assert.equal((await taskIs(id, 'completed')).output.content, 'It is noon.')
    const { body: journal } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${id}/steps?limit=100`)
    const compactions = journal.steps.filter(({ type }: { type: string }) => type === 'compaction')
    assert.ok(compactions.length >= 2)
    const [first] = compactions
    const path = `/p/${project}/tasks/${id}`
    const page = await cadre.open(path)
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript.getByText('It is noon.').first().waitFor()
    const received = transcript.getByText(/^The first \d+ steps were replaced by a summary/)
    await received.last().waitFor()
    await transcript.getByText('Summary', { exact: true }).last().click()
    await transcript.getByText('Look at the clock.').last().waitFor()
    await transcript.getByText('Reasoning summary').last().click()
    await transcript.getByText('Now it is known.').waitFor()
    await checkScreen(page, 'task-compaction')

    await page.goto(`${path}?step=${first.index}`)
    const step = page.getByRole('complementary', { name: `Step ${first.index}` })
    await step.getByRole('heading', { name: 'Context compacted' }).waitFor()
    await step.getByText('builtin/script', { exact: true }).waitFor()
    await step.getByText(`The first ${first.output.before_step} steps were replaced by a summary.`).waitFor()
    await step.getByRole('region', { name: 'Summary' }).getByText(first.output.summary.split('\n')[0]).first().waitFor()
    await checkScreen(page, 'task-compaction-step')
    await page.goto(`${path}?step=0`)
    const thought = page.getByRole('complementary', { name: 'Step 0' })
    await thought.getByText('Reasoning summary').click()
    await thought.locator('strong', { hasText: 'clock' }).waitFor()
    await thought.getByText('1 message of the conversation so far').waitFor()
    await checkScreen(page, 'task-reasoning-step')
    // A long step scrolls in its place: the page itself is no longer than its window.
    assert.ok(await page.evaluate('document.documentElement.scrollHeight <= window.innerHeight'))

    await page.goto(`${path}?view=waterfall`)
    await page
      .getByRole('region', { name: 'Steps over time' })
      .getByRole('button', { name: /Context compacted/ })
      .first()
      .waitFor()
    await checkScreen(page, 'task-compaction-waterfall')
    await page.goto(`${path}?view=events`)
    await page.locator('[data-type="context.compacted"]').first().waitFor()
    await page.goto(`${path}?view=attempts`)
    await page
      .getByRole('region', { name: 'Attempts' })
      .getByText(`A summary replaced the steps before step ${first.output.before_step}.`)
      .waitFor()
    await checkScreen(page, 'task-compaction-attempts')
    // On a telephone all that an attempt says is in sight.
    await page.setViewportSize({ width: 390, height: 844 })
    const right = await page.getByRole('list', { name: 'Notes' }).evaluate((list) => list.getBoundingClientRect().right)
    assert.ok(right <= 390)
    checkPage(page)
    await page.context().close()
  },
)

test('tasks are filtered, saved as a view, and canceled and retried together', inBrowser, async () => {
  const slow = await agent('slow', [{ delay_ms: 600_000 }, { text: 'Late.' }])
  const ids = await Promise.all([1, 2, 3].map((n) => task(slow.id, `Wait long, ${n}.`)))
  await Promise.all(ids.map((id) => taskIs(id, 'running')))
  const page = await cadre.open(`/p/${project}/tasks`)
  await page.getByRole('link', { name: 'Wait long, 3.' }).waitFor()
  await checkScreen(page, 'tasks')
  await choose(page, 'State', 'running')
  await page.waitForURL(/status=running/)
  await page.getByRole('link', { name: 'It is' }).waitFor({ state: 'detached' })
  await page.getByLabel('Part of the input, or task ID').fill('LONG, 2')
  await page.waitForURL(/q=LONG/)
  await page.getByRole('link', { name: 'Wait long, 1.' }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Save view' }).click()
  await page.getByLabel('Name').fill('The second')
  const saved = page.waitForResponse((answer) => answer.request().method() === 'PUT')
  await page.getByRole('dialog').getByRole('button', { name: 'Save view' }).click()
  assert.equal((await saved).status(), 200)
  const views = page.getByRole('navigation', { name: 'Views of tasks' })
  await views.getByRole('link', { name: 'All' }).click()
  await page.getByRole('link', { name: 'Wait long, 1.' }).waitFor()
  // A view is a link, which the user has in every browser.
  const other = await cadre.open(`/p/${project}/tasks`)
  await other.getByRole('navigation', { name: 'Views of tasks' }).getByRole('link', { name: 'The second' }).waitFor()
  checkPage(other)
  await other.context().close()
  await page.reload()
  await views.getByRole('link', { name: 'The second' }).click()
  await page.waitForURL(/status=running.*q=LONG/)
  await page.getByRole('link', { name: 'Wait long, 1.' }).waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Wait long, 2.' }).waitFor()
  await checkScreen(page, 'tasks-view')
  await page.getByRole('button', { name: 'Remove view' }).click()
  await views.getByRole('link', { name: 'The second' }).waitFor({ state: 'detached' })
  await views.getByRole('link', { name: 'Running' }).click()
  for (const n of [1, 2]) await page.getByRole('checkbox', { name: `Select Wait long, ${n}.` }).check()
  await choose(page, 'State', 'Any state')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel tasks' }).click()
  await page.getByText('2 of 2 done').waitFor()
  for (const id of ids.slice(0, 2)) await taskIs(id, 'canceled')
  await taskIs(ids[2]!, 'running')
  await page.getByRole('link', { name: 'Wait long, 1.' }).click()
  await page.getByText('No call of a tool had taken effect.').waitFor()
  await page.goBack()
  for (const n of [1, 2]) await page.getByRole('checkbox', { name: `Select Wait long, ${n}.` }).check()
  await page.getByRole('button', { name: 'Retry', exact: true }).click()
  await page.getByText('2 of 2 done').waitFor()
  const { body } = await cadre.send('GET', `/api/v1/projects/${project}/agents/${slow.id}/tasks?limit=100`)
  const retried = body.tasks.flatMap((one: { retried_from: string | null }) => one.retried_from ?? [])
  assert.deepEqual(retried.toSorted(), ids.slice(0, 2).toSorted())
  checkPage(page)
  await page.context().close()
})

test('a log of many thousand lines scrolls, and new lines do not move it', inBrowser, async () => {
  const talker = await agent('talker', [{ text: 'Hello.' }])
  await eventually(
    async () => (await cadre.sql`select 1 from agent where id = ${talker.id} and status = 'running'`).length === 1,
  )
  await cadre.sql`delete from agent_log where agent_id = ${talker.id}`
  const started = new Date().toISOString()
  const all = isLongRun ? 100_000 : 10_000
  const write = (from: number, to: number) =>
    cadre.sql`
      insert into agent_log (id, agent_id, timestamp, level, message, context)
      select 'log_' || lpad(n::text, 9, '0'), ${talker.id}, ${started}::timestamptz - make_interval(secs => (${all} - n) * 0.01),
        case when n % 1000 = 0 then 'error' else 'info' end, 'line ' || n, jsonb_build_object('n', n)
      from generate_series(${from}::int, ${to}::int) n`
  // Few enough at a time for the timeout of a statement.
  for (let from = 1; from < all; from += 10_000) await write(from, Math.min(from + 9_999, all - 10))
  await cadre.sql`analyze agent_log`
  const page = await cadre.open(`/p/${project}/logs?agent=${talker.id}`, { hasClock: true })
  const lines = page.getByRole('log')
  await lines.getByText(`line ${all - 10}`, { exact: true }).waitFor()
  await page.getByText(`Live · ${(all - 10).toLocaleString('en')} lines`).waitFor()
  await checkScreen(page, 'logs')

  // From end to end, by wheel and by leap: what is there stays few, and every place shows its own lines.
  const worst: number = await page.evaluate(`(async () => {
    const element = document.querySelector('[role=log]')
    let worst = 0
    let last = performance.now()
    for (let i = 0; i < 120; i++) {
      element.scrollBy(0, i < 60 ? -600 : -${all * 0.3})
      await new Promise((done) => requestAnimationFrame(done))
      worst = Math.max(worst, performance.now() - last)
      last = performance.now()
    }
    element.scrollTo(0, 0)
    return worst
  })()`)
  console.log(`the longest frame while ${all} lines scrolled: ${Math.round(worst)} ms`)
  await lines.getByText('line 1', { exact: true }).waitFor()
  assert.ok((await lines.locator('li').count()) < 150, 'only lines in sight are there')
  await lines.evaluate((element) => element.scrollTo(0, element.scrollHeight / 2))
  await page.getByText(/^Paused · /).waitFor()
  await lines
    .getByText(new RegExp(`^line ${all / 20 - 1}\\d$|^line ${all / 20}\\d$`))
    .first()
    .waitFor()

  const before = await lines.evaluate((element) => element.scrollTop)
  await write(all - 9, all)
  // Lines without an event of a task are read every 15 seconds.
  await page.clock.fastForward(15_000)
  await page.getByRole('button', { name: '10 new lines — jump to latest' }).click({ trial: true })
  assert.equal(await lines.evaluate((element) => element.scrollTop), before)
  await page.getByRole('button', { name: '10 new lines — jump to latest' }).click()
  await lines.getByText(`line ${all}`, { exact: true }).waitFor()
  await page.getByText(`Live · ${all.toLocaleString('en')} lines`).waitFor()

  await page.getByRole('button', { name: 'Older error' }).click()
  await page.waitForURL(/at=/)
  await page.getByLabel('Text in the message').fill('line 777')
  const matching = Array.from({ length: all }, (_, at) => `line ${at + 1}`).filter((text) => text.includes('line 777'))
  await lines.getByText(matching.at(-1)!, { exact: true }).waitFor()
  await page.getByText(new RegExp(`· ${matching.length} lines`)).waitFor()

  // Between two moments, of which the address tells, there are as many as the API counts.
  const [middle] = await cadre.sql<{ at: string }>`
    select date_trunc('second', timestamp) as at from agent_log where agent_id = ${talker.id} and message = ${`line ${all / 2}`}`
  const [from, to] = [0, 5000].map((ms) => new Date(Date.parse(middle!.at) + ms).toISOString()) as [string, string]
  const { body: between } = await cadre.send(
    'GET',
    `/api/v1/projects/${project}/agents/${talker.id}/logs?limit=1&start_time=${from}&end_time=${to}`,
  )
  assert.ok(between.pagination.total > 100 && between.pagination.total < 1000)
  await page.getByLabel('Text in the message').fill('')
  await page.getByRole('button', { name: 'UTC' }).click()
  await page.getByRole('button', { name: 'Roomy' }).click()
  await choose(page, 'Time', 'From … to …')
  await page.getByLabel('From, UTC').fill(from.slice(0, 19))
  await page.getByLabel('To, UTC').fill(to.slice(0, 19))
  await page.getByText(new RegExp(`^${between.pagination.total} lines`)).waitFor()
  assert.equal(new URL(page.url()).searchParams.get('to'), to)
  await checkScreen(page, 'logs-between')
  checkPage(page)
  await page.context().close()
})

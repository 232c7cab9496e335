import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../../server/test/harness.ts'
import { startWebhookReceiver, verify, type WebhookReceiver } from '../../server/test/fakes/webhook-receiver.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, choose, chooseAgent, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let receiver: WebhookReceiver
let project: string
let clerk: string
let slow: string

before(async () => {
  if (inBrowser.skip) return
  receiver = await startWebhookReceiver()
  cadre = await startConsole({ CADRE_EGRESS_ALLOW: 'loopback' })
  project = String((await post('/api/v1/projects', { name: 'shop' })).id)
  const config = (script: object[]) => ({
    model: 'builtin/script',
    tools: ['current_time'],
    system_prompt: JSON.stringify(script),
  })
  clerk = (
    await post(`/api/v1/projects/${project}/agents`, {
      name: 'clerk',
      config: config([{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'It is noon.' }]),
    })
  ).id
  slow = (
    await post(`/api/v1/projects/${project}/agents`, {
      name: 'slow',
      config: config([{ delay_ms: 600_000 }, { text: 'Never.' }]),
    })
  ).id
})

after(async () => {
  await cadre?.stop()
  await receiver?.close()
})

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialog = (page: Page) => page.getByRole('dialog')

test('an API key is shown once, works, is rotated with an overlap, and is revoked', inBrowser, async () => {
  const page = await cadre.open('/webhooks')
  await page.getByRole('link', { name: 'API keys' }).click()
  await button(page, 'New API key').click()
  // A dialog begins in its first field, and what is typed there is not lost by a key or a click beside it.
  await page.keyboard.type('billing')
  await page.keyboard.press('Escape')
  await page.getByRole('alert').getByText('Your changes are not saved.').waitFor()
  await page.keyboard.press('Escape')
  await page.mouse.click(5, 400)
  await button(page, 'Keep editing').click()
  assert.equal(await page.getByLabel('Name').inputValue(), 'billing')
  await dialog(page).getByRole('button', { name: 'Close' }).click()
  await button(page, 'Discard changes').click()
  await dialog(page).waitFor({ state: 'detached' })
  await button(page, 'New API key').click()
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  await button(page, 'New API key').click()
  await page.getByLabel('Name').fill('billing')
  await page.getByLabel('Read only').check()
  await checkScreen(page, 'keys-new')
  await dialog(page).getByRole('button', { name: 'Create key' }).click()
  const secret = (await page.getByTestId('secret').textContent()) ?? ''
  assert.match(secret, /^cadre_[0-9a-f]{32}$/)
  for (const path of ['/api/v1/hello', '/api/v1/projects'])
    assert.equal((await cadre.send('GET', path, { key: secret })).status, 200)
  // Neither a key nor a click closes it before the user confirms that it is saved.
  await page.keyboard.press('Escape')
  await page.getByText('Save it first').waitFor()
  await checkScreen(page, 'keys-reveal')
  // Nor does going back to the page before, over the form and the list.
  await page.evaluate('history.go(-7)')
  await page.getByText('Leave without it?').waitFor()
  await button(page, 'Stay here').click()
  await page.getByLabel('I have saved it').check()
  await button(page, 'Done').click()
  await page.getByTestId('secret').waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'billing' }).waitFor()
  assert.ok(!(await page.content()).includes(secret))
  await page.reload()
  await page.getByRole('link', { name: 'billing' }).click()
  await page.getByText('In use: ').waitFor()
  await dialog(page).getByText('from 127.0.0.1').waitFor()
  // Consequences are shown before a scope is removed.
  await page.getByText('2 operations were called').waitFor()
  await dialog(page).getByRole('radio', { name: 'Run tasks' }).check()
  await dialog(page).getByText('listProjects needs projects:read').waitFor()
  await dialog(page).getByLabel('Read only').check()
  await page.getByText('would be refused with 403').waitFor({ state: 'detached' })
  await checkScreen(page, 'keys-one')
  await button(page, 'Rotate key').click()
  const next = (await page.getByTestId('secret').textContent()) ?? ''
  assert.notEqual(next, secret)
  for (const key of [secret, next]) assert.equal((await cadre.send('GET', '/api/v1/hello', { key })).status, 200)
  await page.getByLabel('I have saved it').check()
  await button(page, 'Done').click()
  await page.getByText('two secrets').waitFor()
  await checkScreen(page, 'keys')
  await page.getByRole('link', { name: 'billing' }).click()
  await button(page, 'Revoke key').click()
  const asked = page.getByRole('dialog', { name: 'Revoke the key billing' })
  await asked.waitFor()
  assert.equal(await page.locator('.fixed.inset-0[role=presentation]').count(), 2, 'the dialog behind it is dimmed too')
  await asked.getByRole('button', { name: 'Revoke key' }).click()
  await page.getByText('The key is revoked').waitFor()
  for (const key of [secret, next]) assert.equal((await cadre.send('GET', '/api/v1/hello', { key })).status, 401)
  checkPage(page)
  await page.context().close()
})

test('an invitation for a text that is no e-mail address is refused at its field', inBrowser, async () => {
  // The test causes the refusal.
  const page = await cadre.open('/settings/members?panel=invite', { allowed: /400/ })
  await page.getByLabel('E-mail address').fill('nobody')
  await button(page, 'Create link').click()
  await dialog(page).getByText('Must be a valid e-mail address', { exact: true }).waitFor()
  await page.locator('[aria-invalid=true]:focus').waitFor()
  checkPage(page)
  await page.context().close()
})

test(
  'a webhook is created and tested, its signature verifies, and a refused delivery is sent again',
  inBrowser,
  async () => {
    receiver.answer('/hook', { status: 500, body: 'out of order' }, { status: 204 })
    const page = await cadre.open('/webhooks')
    await page.getByText('No webhooks yet').waitFor()
    await checkScreen(page, 'webhooks-none')
    await button(page, 'Create a webhook').click()
    await page.getByLabel('Address').fill(receiver.url('/hook'))
    await dialog(page).getByRole('button', { name: 'Create webhook' }).click()
    const secret = (await page.getByTestId('secret').textContent()) ?? ''
    await page.getByLabel('I have saved it').check()
    await button(page, 'Done').click()
    await page.getByRole('link', { name: receiver.url('/hook') }).click()
    await button(page, 'Send test event').click()
    const [request] = await receiver.received('/hook', 1)
    verify(request!, secret)
    await page.getByText('answered 500', { exact: true }).waitFor()
    await page.getByText('out of order').waitFor()
    await page.getByText('Next attempt', { exact: true }).waitFor()
    await checkScreen(page, 'delivery')
    // The service may have retried it by now; either way it is sent once more.
    const before = receiver.requests('/hook').length
    await page.getByRole('button', { name: /^(Send now|Redeliver)$/ }).click()
    const again = (await receiver.received('/hook', before + 1))[before]!
    verify(again, secret)
    assert.equal(again.headers['webhook-id'], request!.headers['webhook-id'])
    await page.getByText('answered 204', { exact: true }).first().waitFor()

    // The page verifies deliveries, with a valid and an invalid signature.
    await page.getByRole('link', { name: receiver.url('/hook') }).click()
    await page.getByText('Verify a signature').click()
    const headers = Object.entries(again.headers).map(([name, value]) => `${name}: ${String(value)}`)
    await page.getByLabel('Headers').fill(headers.join('\n'))
    await page.getByLabel('Body', { exact: true }).fill(again.body)
    await page.getByLabel('Secret', { exact: true }).fill(secret)
    await button(page, 'Verify').click()
    await page.getByText('Signed by this secret').waitFor()
    await page.getByLabel('Body', { exact: true }).fill(`${again.body} `)
    await button(page, 'Verify').click()
    await page.getByText('No signature matches the secret').waitFor()
    await page.getByLabel('Headers').fill('webhook-signature: v1,9j3g7PG5…')
    await button(page, 'Verify').click()
    await page.getByText('The signature is shortened').waitFor()
    await checkScreen(page, 'webhook')
    await page.getByRole('navigation', { name: 'Where' }).getByRole('link', { name: 'Webhooks' }).click()
    await page.getByText('100%,').waitFor()
    await checkScreen(page, 'webhooks')
    await page.context().close()
  },
)

test('the playground shows answer and tool calls of an agent, and Stop cancels the task', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/playground`)
  await chooseAgent(page, 'clerk')
  await page.getByLabel('Message').fill('What time is it?')
  await page.keyboard.press('Control+Enter')
  await page.getByText('It is noon.').waitFor()
  const call = page.getByText('current_time completed')
  await call.waitFor()
  await page.getByRole('status').getByText('The task is completed').waitFor()
  await checkScreen(page, 'playground')
  // A call of a tool leads to its step.
  await call.getByRole('link').click()
  await page.getByRole('complementary', { name: 'Step 1' }).getByText('current_time').first().waitFor()
  await page.goBack()
  await chooseAgent(page, 'slow')
  await page.getByLabel('Message').fill('Wait.')
  await button(page, 'Send').click()
  const task = await eventually(async () => {
    const { body } = await cadre.send('GET', `/api/v1/projects/${project}/agents/${slow}/tasks?status=running`)
    return body.tasks[0]
  })
  await button(page, 'Stop').click()
  await page.getByRole('status').getByText('The task is canceled').waitFor()
  const { body } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${task.id}`)
  assert.equal(body.status, 'canceled')
  checkPage(page)
  await page.context().close()
})

test(
  'the playground sends an object as input, to a version of the agent, with an output schema',
  inBrowser,
  async () => {
    const properties = { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } }
    const input_schema = { type: 'object', required: ['city', 'days'], properties }
    const agents = `/api/v1/projects/${project}/agents`
    const { id } = await post(agents, { name: 'forecast', config: { model: 'builtin/echo', input_schema } })
    for (const system_prompt of ['Be brief.', 'Be kind.'])
      assert.equal((await cadre.send('PUT', `${agents}/${id}`, { body: { config: { system_prompt } } })).status, 200)
    const page = await cadre.open(`/p/${project}/playground?agent=${id}`)
    const input = page.getByLabel('Input', { exact: true })
    await input.waitFor()
    await eventually(async () => (await input.inputValue()) !== '')
    assert.deepEqual(JSON.parse(await input.inputValue()), { city: '', days: 1 })
    await input.fill('{"city": "Oslo", ')
    await page.getByText('This isn’t valid JSON').first().waitFor()
    await button(page, 'Send').and(page.locator('[aria-description^="This isn’t valid JSON"]')).waitFor()
    await page.getByText('Show the schema').click()
    await page.getByLabel('What the agent takes').getByText('"minimum": 1').waitFor()
    await checkScreen(page, 'playground-object-broken')

    await input.fill('{"city": "Oslo", "days": 3}')
    await page.getByText('Advanced', { exact: true }).click()
    await choose(page, 'Version', 'Version 1')
    await page.waitForURL(/version=1/)
    const own = page.getByLabel('Output schema')
    await own.fill('{"type": "array"}')
    await button(page, 'Send').and(page.locator('[aria-description="The output schema is not valid"]')).waitFor()
    const output_schema = { type: 'object', required: ['city'] }
    await own.fill(JSON.stringify(output_schema))
    await input.press('Control+Enter')
    await page.getByRole('status').getByText('The task is completed').waitFor()
    const answer = page.getByRole('region', { name: 'Output of forecast' })
    await answer.getByRole('region', { name: 'Data of the answer' }).getByText('"Oslo"').waitFor()
    await answer.getByText('As text', { exact: true }).click()
    await answer.getByRole('region', { name: 'Answer as JSON' }).waitFor()
    await checkScreen(page, 'playground-object')
    const { body } = await cadre.send('GET', `${agents}/${id}/tasks`)
    const { body: task } = await cadre.send('GET', `/api/v1/projects/${project}/tasks/${body.tasks[0].id}`)
    assert.deepEqual(
      [task.input, task.agent_version, task.output_schema, task.output.data],
      [{ city: 'Oslo', days: 3 }, 1, output_schema, { city: 'Oslo', days: 3 }],
    )
    assert.equal(new URL(page.url()).searchParams.get('version'), '1')
    // The address alone opens it again with the version.
    await page.reload()
    await page.getByLabel('Version').waitFor()
    assert.equal(await page.getByLabel('Version').textContent(), 'Version 1')
    checkPage(page)
    await page.context().close()
  },
)

test(
  'an input is saved as a test case, run with two agents beside the expected answer, changed and deleted',
  inBrowser,
  async () => {
    const teller = (
      await post(`/api/v1/projects/${project}/agents`, {
        name: 'teller',
        config: { model: 'builtin/script', system_prompt: JSON.stringify([{ text: 'It is noon.' }]) },
      })
    ).id
    const cases = async () =>
      (await cadre.send('GET', `/api/v1/projects/${project}/agents/${teller}/test-cases`)).body.test_cases
    const echo = (
      await post(`/api/v1/projects/${project}/agents`, { name: 'parrot', config: { model: 'builtin/echo' } })
    ).id
    const page = await cadre.open(`/p/${project}/playground?agent=${teller}`)
    await page.getByLabel('Message').fill('What time is it?')
    await button(page, 'Save as test case').click()
    await dialog(page).getByLabel('Name').fill('The time')
    await dialog(page).getByLabel('Expected').fill('It says that it is noon.')
    await checkScreen(page, 'playground-save-case')
    await button(page, 'Save').click()
    await page.getByRole('region', { name: 'Expected' }).getByText('It says that it is noon.').waitFor()
    const [kept] = await cases()
    assert.deepEqual(
      [kept.name, kept.input, kept.expected],
      ['The time', 'What time is it?', 'It says that it is noon.'],
    )

    // The address alone opens the case, for two agents, and the message can be sent as it stands.
    await page.goto(`/p/${project}/playground?agent=${teller}&against=${echo}&case=${kept.id}`)
    await page.getByRole('link', { name: 'The time' }).and(page.locator('[aria-current]')).waitFor()
    assert.equal(await page.getByLabel('Message').inputValue(), 'What time is it?')
    await button(page, 'Send').click()
    await page.getByRole('status').getByText('The task is completed').nth(1).waitFor({ state: 'attached' })
    await page.getByRole('region', { name: 'Output of teller' }).getByText('It is noon.').waitFor()
    await page.getByRole('region', { name: 'Output of parrot' }).getByText('What time is it?').waitFor()
    await checkScreen(page, 'playground-compare')

    await page.getByLabel('Message').fill('What time is it now?')
    await button(page, 'Change The time').click()
    await dialog(page).getByLabel('Name').fill('The time now')
    await button(page, 'Save').click()
    await page.getByRole('link', { name: 'The time now' }).waitFor()
    assert.deepEqual(
      (await cases()).map(({ id, input }: { id: string; input: string }) => [id, input]),
      [[kept.id, 'What time is it now?']],
    )
    await button(page, 'Delete The time now').click()
    await button(page, 'Delete test case').click()
    await page.getByText('Save an input with its expected answer').waitFor()
    assert.deepEqual(await cases(), [])
    checkPage(page)
    await page.context().close()
  },
)

test(
  'the playground holds a conversation with each of two agents and continues both after a reload',
  inBrowser,
  async () => {
    const agent = async (name: string, config: object) =>
      (await post(`/api/v1/projects/${project}/agents`, { name, config })).id as string
    const host = await agent('host', {
      model: 'builtin/script',
      system_prompt: JSON.stringify([{ text: '**Welcome**' }]),
    })
    const echo = await agent('mirror', { model: 'builtin/echo' })
    const page = await cadre.open(`/p/${project}/playground?agent=${host}&against=${echo}`)
    await button(page, 'A conversation').click()
    const message = page.getByLabel('Message')
    const ofHost = page.getByRole('region', { name: 'Output of host' })
    const ofEcho = page.getByRole('region', { name: 'Output of mirror' })
    await message.fill('Good morning.')
    await button(page, 'Send').click()
    // What a model writes is Markdown.
    await ofHost.locator('strong', { hasText: 'Welcome' }).waitFor()
    await page.getByRole('status').getByText('The task is completed').nth(1).waitFor({ state: 'attached' })
    assert.equal(await message.inputValue(), '')
    await message.fill('Good night.')
    await button(page, 'Send').click()
    await page.getByRole('status').getByText('The task is completed').nth(3).waitFor({ state: 'attached' })
    await ofEcho.getByText('Good night.').nth(1).waitFor()
    await checkScreen(page, 'playground-conversation')
    const params = new URL(page.url()).searchParams
    const said = async (name: string) =>
      (await cadre.send('GET', `/api/v1/projects/${project}/threads/${params.get(name)}/messages`)).body.messages.map(
        ({ role, content }: { role: string; content: string }) => `${role}: ${content}`,
      )
    assert.deepEqual(await said('against_thread'), [
      'user: Good morning.',
      'assistant: Good morning.',
      'user: Good night.',
      'assistant: Good night.',
    ])

    // The address alone shows what was said, and it goes on from there.
    await page.reload()
    await ofHost.locator('strong', { hasText: 'Welcome' }).nth(1).waitFor()
    await message.fill('Are you there?')
    await button(page, 'Send').click()
    await ofEcho.getByText('Are you there?').nth(1).waitFor()
    await ofEcho.getByText('Good morning.').nth(1).waitFor()
    await page.getByRole('status').getByText('The task is completed').nth(1).waitFor({ state: 'attached' })
    assert.equal((await said('against_thread')).length, 6)

    // A refusal is shown, and the input stays to be sent again.
    await button(page, 'Start over').click()
    await page.getByText('Your conversation appears here').nth(1).waitFor()
    await cadre.send('DELETE', `/api/v1/projects/${project}/agents/${echo}`)
    await message.fill('Hello?')
    await button(page, 'Send').click()
    await page.getByRole('alert').getByText('agent_not_found').first().waitFor()
    assert.equal(await message.inputValue(), 'Hello?')
    await page.context().close()
  },
)

test('metrics are charts or a table, and a point of a chart leads to the tasks of its period', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/metrics?range=1h`)
  await page.getByRole('combobox', { name: 'Agent: All agents' }).waitFor()
  await chooseAgent(page, 'clerk')
  await page.getByLabel('Compare with the previous period').check()
  const chart = page.getByRole('group', { name: /^Finished tasks/ })
  await chart.locator('svg').first().waitFor()
  await chart.focus()
  await page.keyboard.press('End')
  await page.getByText(/completed: \d/).waitFor()
  // One crosshair over all charts.
  assert.equal(
    await page.locator('[data-crosshair]').count(),
    await page.getByRole('group', { name: /: a chart$/ }).count(),
  )
  await checkScreen(page, 'metrics')
  await chart.focus()
  await page.keyboard.press('End')
  await page.keyboard.press('Enter')
  await page.waitForURL((url) => url.pathname.endsWith('/tasks') && url.searchParams.has('finished_after'))
  // The tasks of that moment, and no others.
  await page.getByText(/^Ended from .* until /).waitFor()
  const asked = new URL(page.url()).searchParams
  const { body } = await cadre.send(
    'GET',
    `/api/v1/projects/${project}/agents/${clerk}/tasks?${new URLSearchParams({ finished_after: asked.get('finished_after')!, finished_before: asked.get('finished_before')! })}`,
  )
  const found = body.tasks.length
  const pages = page.getByRole('navigation', { name: 'Pages of tasks' })
  await (
    found === 0
      ? page.getByText('No matching tasks')
      : pages.getByText(found === 1 ? '1 task' : `1–${found} of ${found} tasks`, { exact: true })
  ).waitFor()
  await checkScreen(page, 'tasks-of-a-moment')
  await page.goBack()
  await page.getByLabel('Show as a table').check()
  await page.getByRole('table', { name: 'Points over time' }).waitFor()
  assert.ok(page.url().includes('view=table') && page.url().includes('compare=yes'), page.url())
  const completed = await page.locator('tbody td[data-column=completed]').allTextContents()
  assert.equal(
    completed.map((text) => Number(/\d+/.exec(text)?.[0])).reduce((sum, one) => sum + one, 0),
    1,
  )
  await checkScreen(page, 'metrics-table')
  await page.context().close()
})

test('usage is exported, also after a failure, and budgets are set and changed', inBrowser, async () => {
  await post(`/api/v1/projects/${project}/agents/${clerk}/tasks?wait=30`, { input: 'What time is it?' })
  const page = await cadre.open(`/p/${project}/usage`, { allowed: /status of 503/ })
  await page.getByRole('cell', { name: 'clerk' }).waitFor()
  // Said once, and not under each figure.
  assert.equal(await page.getByText('There is no data of the previous period').count(), 1)
  await checkScreen(page, 'usage')
  const [file] = await Promise.all([page.waitForEvent('download'), button(page, 'Export CSV').click()])
  assert.equal(file.suggestedFilename().endsWith('.csv'), true)
  // An export that fails says so, with what to ask the operator about, and can be tried again.
  await page.route(/\/usage\?.*limit=100/, (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/json',
      body: JSON.stringify({
        error: { code: 'service_unavailable', message: 'Out for lunch.', request_id: 'req_lunch' },
      }),
    }),
  )
  await button(page, 'Export CSV').click()
  const failed = page.getByRole('alert').filter({ hasText: 'Out for lunch.' })
  await failed.getByText('req_lunch').waitFor()
  await page.unroute(/\/usage\?.*limit=100/)
  await Promise.all([page.waitForEvent('download'), failed.getByRole('button', { name: 'Try again' }).click()])
  await failed.waitFor({ state: 'detached' })
  await page.getByRole('link', { name: 'Limits', exact: true }).click()
  await page.getByText('none refused').waitFor()
  await page.getByLabel(/Show unused limits/).check()
  await checkScreen(page, 'limits')
  await page.getByRole('link', { name: 'Budgets', exact: true }).click()
  await button(page, 'Set a budget').click()
  await page.getByLabel('US dollars').fill('25')
  await dialog(page).getByRole('button', { name: 'Set budget' }).click()
  await page.getByText('of $25.00').waitFor()
  await page.getByText('Warns at 80%').waitFor()
  await page.getByRole('button', { name: /^Change the budget/ }).click()
  await page.getByLabel('Warn at, in percent').fill('50')
  await dialog(page).getByRole('button', { name: 'Save budget' }).click()
  await page.getByText('Warns at 50%').waitFor()
  // A key is chosen by its name, and shown by it.
  await post('/api/v1/auth/api-keys', { name: 'bounded', scopes: ['agents:read'] })
  await button(page, 'Set a budget').click()
  await choose(page, 'What it limits', 'One API key')
  await choose(page, 'API key', /^bounded [(]/)
  await page.getByLabel('Tokens').fill('1000')
  await dialog(page).getByRole('button', { name: 'Set budget' }).click()
  await page.getByRole('link', { name: 'bounded' }).waitFor()
  await checkScreen(page, 'budgets')
  await page.getByRole('link', { name: 'Retention and storage', exact: true }).click()
  // Each kind says who sets how long it is kept, and the page why that is not done here.
  const kept = page.getByRole('table', { name: 'Retention' })
  await kept.getByRole('row', { name: /^Tasks that have ended.* 365 days CADRE_TASK_RETENTION_DAYS/ }).waitFor()
  await kept.getByRole('row', { name: /^Audit log 400 days Cadre, not adjustable/ }).waitFor()
  await page.getByText('only its operator can change it').waitFor()
  await page.getByText(/^[\d.]+ [kM]B in total/).waitFor()
  await checkScreen(page, 'retention')

  await page.goto('/settings/sessions')
  await page.getByText('this one').waitFor()
  await checkScreen(page, 'sessions')
  await page.goto('/settings/apps?tab=granted')
  await page.getByText('You have allowed no app').waitFor()
  await checkScreen(page, 'apps')
  await page.context().close()
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { after, before, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Locator, Page } from 'playwright-core'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, choose, startConsole, type TestConsole } from './console.ts'
import { createProject } from '../../server/test/fixtures.ts'

let cadre: TestConsole
let project: number
/** Agents of the project. */
const agents = 10_000

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
  project = (await cadre.send('POST', '/api/v1/projects', { body: { name: 'crowd' } })).body.id
  await fill()
})

after(() => cadre?.stop())

/** Thousands of agents, the newest with a day of aggregated tasks. */
async function fill(): Promise<void> {
  await cadre.sql`
    insert into agent (id, project_id, name, description, status, config, metadata, created_by, token_subject, created_at, last_activity)
    select 'agent_' || lpad(n::text, 26, '0'), ${project}, 'worker-' || lpad(n::text, 5, '0'), 'Works on part ' || n,
      (array['running', 'running', 'running', 'paused', 'stopped', 'error'])[1 + n % 6],
      jsonb_build_object('model', (array['openai/gpt-4o-mini', 'anthropic/claude-sonnet', 'builtin/echo'])[1 + n % 3],
        'system_prompt', repeat('Be brief. ', 200)),
      jsonb_build_object('tags', case when n % 100 = 0 then '["eu", "night"]'::jsonb else '["eu"]'::jsonb end),
      'user_x', 'user_x', now() - make_interval(secs => ${agents} - n), now() - make_interval(secs => n % 4000)
    from generate_series(1, ${agents}) n`
  await cadre.sql`
    insert into task_rollup (agent_id, seconds, bucket, completed, failed, canceled, timed, microseconds, all_microseconds,
      first_created_at, keys, counts)
    select 'agent_' || lpad(n::text, 26, '0'), 3600, bucket_floor(3600, now()) - make_interval(hours => h), (n * h) % 50, h % 3, 0,
      (n * h) % 50 + h % 3, 2500000, 2500000, now(), array[40::smallint], array[(n * h) % 50 + h % 3]::bigint[]
    from generate_series(${agents} - 200, ${agents}) n, generate_series(1, 23) h where n % 7 <> 0 and (n * h) % 50 + h % 3 > 0`
  await cadre.sql`
    insert into task_rollup_state (rolled_until) values (bucket_floor(60, now() - interval '2 minutes'))
    on conflict (only_one) do update set rolled_until = excluded.rolled_until`
}

test('a list of ten thousand agents has their figures and opens at its first and last page', inBrowser, async (t) => {
  const page = await cadre.open(`/p/${project}`)
  await page.getByRole('heading', { name: 'crowd', level: 1 }).waitFor()
  const link = page.getByRole('navigation').getByRole('link', { name: 'Agents', exact: true })
  const first = page.getByRole('row', { name: /worker-10000/ })
  await measure(t, 'from the click to the rows', async () => {
    await link.click()
    await first.waitFor()
  })
  await page.getByText('1–50 of 10,000 agents').waitFor()
  await first.getByRole('img', { name: /completed/ }).waitFor()
  assert.equal(await page.getByRole('row').count(), 51)
  await checkScreen(page, 'agents-many')
  await measure(t, 'from nothing, with all scripts, to the rows', async () => {
    await page.reload()
    await first.waitFor()
  })
  await measure(t, 'to the last page', async () => {
    await page.goto(`/p/${project}/agents?offset=9950`)
    await page.getByRole('row', { name: /worker-00001/ }).waitFor()
  })
  checkPage(page)
})

test('the address of the list of agents holds its filters by text, model, tag and state', inBrowser, async () => {
  const page = await cadre.open(`/p/${project}/agents`)
  await page.getByRole('searchbox', { name: 'Name or description' }).fill('part 99')
  await page.getByText('1–50 of 111 agents').waitFor()
  await page.getByRole('combobox', { name: 'Model' }).fill('builtin/echo')
  await page.getByText('1–36 of 36 agents').waitFor()
  await page.getByRole('combobox', { name: 'Tag' }).fill('night')
  await choose(page, 'State', 'running')
  await page.getByRole('heading', { name: 'No matching agents' }).waitFor()
  const address = new URL(page.url())
  assert.deepEqual(Object.fromEntries(address.searchParams), {
    text: 'part 99',
    model: 'builtin/echo',
    tag: 'night',
    status: 'running',
  })
  await page.getByRole('button', { name: 'Show all', exact: true }).click()
  await page.getByText('1–50 of 10,000 agents').waitFor()
  assert.equal(await page.getByRole('combobox', { name: 'Tag' }).inputValue(), '')
  // The address shows the same to every user.
  await page.goto(`/p/${project}/agents?tag=night&sort=name`)
  await page.getByRole('row', { name: /worker-00100/ }).waitFor()
  await page.getByText('1–50 of 100 agents').waitFor()
  checkPage(page)
})

test('the list of agents counts tasks as they end, without a reload', inBrowser, async () => {
  const { body: agent } = await cadre.send('POST', `/api/v1/projects/${project}/agents`, {
    body: { name: 'awake', config: { model: 'builtin/echo' }, metadata: { tags: ['new'] } },
  })
  const page = await cadre.open(`/p/${project}/agents?tag=new`)
  const cell = (column: string) => rowOf(page, 'awake').locator(`[data-column=${column}]`)
  await cell('tasks').getByText('0', { exact: true }).waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  for (const input of ['one', 'two'])
    await cadre.send('POST', `/api/v1/projects/${project}/agents/${agent.id}/tasks`, { body: { input } })
  await cell('tasks').getByText('2', { exact: true }).waitFor()
  await cell('success').getByText('100%').waitFor()
  await cell('hours').getByRole('img', { name: '24 hours: 2 completed, 0 failed' }).waitFor()
  await checkScreen(page, 'agents-one')
})

test(
  'the page of an agent shows the webhooks that get its events, the members and keys that may use it, and commands that work',
  inBrowser,
  async () => {
    const agent = `agent_${'0'.repeat(22)}7777`
    for (const [host, filters] of [
      ['mine', { agent_id: [agent] }],
      ['other', { agent_id: ['agent_x'] }],
    ] as const) {
      const body = { url: `https://${host}.example.com/hook`, events: ['task.*'], filters, secret: 'canary' }
      assert.equal((await cadre.send('POST', '/api/v1/webhooks', { body })).status, 201)
    }
    const page = await cadre.open(`/p/${project}/agents/${agent}?tab=webhooks`)
    await page.getByRole('link', { name: 'https://mine.example.com/hook' }).waitFor()
    await page.getByRole('navigation', { name: 'Pages of webhooks' }).getByText('1 webhook', { exact: true }).waitFor()
    await checkScreen(page, 'agent-webhooks')
    await page.getByRole('link', { name: 'Access', exact: true }).click()
    const members = page.getByRole('table', { name: /^Members/ })
    await members.getByRole('row', { name: /owner/ }).getByText('manage').waitFor()
    await page
      .getByRole('table', { name: /^API keys/ })
      .getByText('manage')
      .first()
      .waitFor()
    await checkScreen(page, 'agent-access')
    await page.getByRole('link', { name: 'Use as', exact: true }).click()
    await page.getByText(`-H 'Accept: text/event-stream'`).waitFor()
    // What the page shows is what works, as it stands.
    const { body: echo } = await cadre.send('POST', `/api/v1/projects/${project}/agents`, { body: { name: 'used' } })
    await page.goto(`/p/${project}/agents/${echo.id}?tab=use`)
    for (const language of ['curl', 'Command line']) {
      await page.getByRole('button', { name: language }).first().click()
      const snippets = page.getByLabel(`Copy as ${language}`).and(page.locator('pre'))
      await snippets.nth(1).waitFor()
      for (const snippet of await snippets.allInnerTexts())
        assert.match(await inShell(snippet), /Hello, agent/, `${language}: ${snippet}`)
    }
    await checkScreen(page, 'agent-use')
  },
)

test('the form of an agent checks its model, runs a test task and keeps unsaved input', inBrowser, async () => {
  const agents = `/api/v1/projects/${project}/agents`
  const tool = { name: 'weather', description: 'The weather in a city.', kind: 'http' }
  const made = await cadre.send('POST', `/api/v1/projects/${project}/tools`, {
    body: {
      ...tool,
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
      http: { method: 'GET', url: 'https://weather.example.com/{city}' },
    },
  })
  assert.equal(made.status, 201)
  const { body: agent } = await cadre.send('POST', agents, { body: { name: 'formed' } })
  const page = await cadre.open(`/p/${project}/agents/${agent.id}/edit`, { allowed: /412/ })
  const model = page.getByRole('combobox', { name: 'Model' })
  await page.getByText('builtin is reachable.').waitFor()
  await model.fill('openai/gpt-4o-mini')
  await page.getByText('No provider is configured for it').waitFor()
  await model.fill('builtin/echo')
  await page.getByLabel('Tags').fill('eu, night, eu')
  await page.getByLabel('current_time', { exact: true }).check()
  await page.getByLabel('weather', { exact: true }).check()
  await choose(page, 'When it wants to call weather', 'ask a person first')
  for (const [name, argument] of [
    ['current_time', '"time_zone"'],
    ['weather', '"city"'],
  ] as const) {
    const line = page.getByRole('listitem').filter({ has: page.getByLabel(name, { exact: true }) })
    await line.getByText('Arguments', { exact: true }).click()
    await page.getByLabel(`Arguments of ${name}`).getByText(argument).waitFor()
  }
  await page.getByRole('button', { name: 'Save and try' }).click()
  const output = page.getByRole('region', { name: 'Output' })
  await output.getByText('Hello, agent').waitFor()
  await page.getByRole('button', { name: 'Try', exact: true }).waitFor()
  await checkScreen(page, 'agent-form')
  const { body } = await cadre.send('GET', `${agents}/${agent.id}`)
  assert.deepEqual(body.metadata.tags, ['eu', 'night'])
  assert.deepEqual(body.config.tools, ['current_time', 'weather'])
  assert.deepEqual(body.config.tool_policies, { weather: 'ask' })
  // What was saved is what the next change is compared with.
  await page.getByLabel('Temperature').fill('0.3')
  await page.getByText('Task budget, fallback models, approvals').click()
  await page.getByLabel('Max cost per task, in USD').fill('0.5')
  await page.getByLabel('First retry delay, in seconds').fill('2')
  await page.getByText('Metadata', { exact: true }).click()
  const metadata = page.getByLabel('Metadata as JSON')
  await metadata.fill('{"team": ')
  await page
    .getByRole('button', { name: 'Save', exact: true })
    .and(page.locator('[aria-description="The metadata is not valid JSON"]'))
    .waitFor()
  await metadata.fill('{"team": "blue"}')
  // Nothing typed is lost: neither by a link, nor by a concurrent change of the agent.
  await page.getByRole('navigation').getByRole('link', { name: 'Agents', exact: true }).click()
  await page.getByRole('button', { name: 'Stay here' }).click()
  await cadre.send('PUT', `${agents}/${agent.id}`, { body: { config: { max_steps: 7 } } })
  const save = page.getByRole('button', { name: 'Save', exact: true })
  await save.click()
  await page.getByRole('button', { name: 'Reload and keep my changes' }).click()
  await page.getByText('The agent was changed since').waitFor({ state: 'detached' })
  await save.click()
  await page.waitForURL((url) => !url.pathname.endsWith('/edit'))
  const { config, metadata: noted } = (await cadre.send('GET', `${agents}/${agent.id}`)).body
  assert.deepEqual([config.temperature, config.budget, config.max_steps], [0.3, { max_cost_usd: 0.5 }, 7])
  assert.deepEqual([config.retry, noted.team, noted.tags], [{ initial_delay_seconds: 2 }, 'blue', ['eu', 'night']])

  // Who changed what is shown with the agent, and links to the audit log.
  await page.getByRole('link', { name: 'Activity', exact: true }).click()
  const change = page.getByRole('listitem').filter({ hasText: 'config.max_steps' })
  await change.getByText('What changed').click()
  await change.getByRole('row', { name: 'config.max_steps' }).getByText('7', { exact: true }).waitFor()
  await checkScreen(page, 'agent-activity')
  await change.getByRole('link', { name: 'changed the agent' }).click()
  await page.getByRole('dialog').getByRole('row', { name: 'config.max_steps' }).waitFor()
})

test('the form of an agent says at once which settings its model does not support', inBrowser, async () => {
  const { body: agent } = await cadre.send('POST', `/api/v1/projects/${project}/agents`, { body: { name: 'dialled' } })
  const page = await cadre.open(`/p/${project}/agents/${agent.id}/edit`)
  const note = (text: string) => page.getByRole('status').filter({ hasText: text })
  await page.getByRole('combobox', { name: 'Model' }).fill('openai/o3')
  await page.getByLabel('Temperature').fill('1')
  await note('o3 does not accept a temperature; it is omitted.').waitFor()
  await choose(page, 'Effort', 'Max')
  await note('o3 has no effort “max”; “high” is used.').waitFor()
  await choose(page, 'Service tier', 'Flex: cheaper, slower')
  await openDetails(page)
  await checkScreen(page, 'agent-form-call-settings')
  await choose(page, 'Effort', "Model's default")
  await note('“high” is used').waitFor({ state: 'detached' })
  await page.getByLabel('Temperature').fill('')
  await note('it is omitted').waitFor({ state: 'detached' })
  checkPage(page)
  await page.context().close()
})

test(
  'the form of an agent does not send an invalid schema, shows a refusal at its field, and removes an emptied schema',
  inBrowser,
  async () => {
    const agents = `/api/v1/projects/${project}/agents`
    // Members without a field are preserved, and so are members in a closed section.
    const kept = { context: { compact_at_tokens: 900, keep_last_steps: 2 }, house_style: { tone: 'dry' } }
    const { body: agent } = await cadre.send('POST', agents, { body: { name: 'typed', config: { ...kept } } })
    const configNow = async () => (await cadre.send('GET', `${agents}/${agent.id}`)).body.config
    const page = await cadre.open(`/p/${project}/agents/${agent.id}/edit`, { allowed: /400/ })
    const save = page.getByRole('button', { name: 'Save', exact: true })
    const input = page.getByLabel('Input schema')
    await page.getByText('Input and output', { exact: true }).click()
    await input.fill('{"type":"array"}')
    await page.getByText('Set "type" to "object" at the top level.').waitFor()
    await save.and(page.locator('[aria-description="The input schema is not valid"]')).waitFor()
    await input.fill('{"type":')
    await page.getByText('This isn’t valid JSON').waitFor()
    assert.equal(await save.isDisabled(), true)

    // What only the service knows stands at the field as well, with where in the schema it is.
    await input.fill('{"type":"object","properties":{"name":{"type":"strin"}}}')
    await save.click()
    await refusedAt(input, /properties\.name\.type: "strin" is not a type; allowed: .*did you mean "string"/)
    await input.fill('{"type":"object","properties":{"name":{"type":"string","pattern":"^(a+)+$"}}}')
    await save.click()
    await refusedAt(input, /pattern that takes too long on some texts: properties\.\w+\.pattern is/)
    await openDetails(page)
    await checkScreen(page, 'agent-form-schemas')

    const schema = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
    await input.fill(JSON.stringify(schema))
    await page.getByLabel('Output schema').fill('{"type":"object"}')
    await save.click()
    await page.waitForURL((url) => !url.pathname.endsWith('/edit'))
    assert.deepEqual(await configNow(), {
      ...(await configNow()),
      ...kept,
      input_schema: schema,
      output_schema: { type: 'object' },
    })

    await page.goto(`/p/${project}/agents/${agent.id}/edit`)
    assert.deepEqual(JSON.parse(await input.inputValue()), schema)
    await input.fill('')
    await page.getByLabel('Output schema').fill('')
    await save.click()
    await page.waitForURL((url) => !url.pathname.endsWith('/edit'))
    const { input_schema, output_schema, context, house_style } = await configNow()
    assert.deepEqual([input_schema, output_schema, { context, house_style }], [undefined, undefined, kept])
    checkPage(page)
    await page.context().close()
  },
)

test('an agent is exported to a file without secrets and created from it in another project', inBrowser, async () => {
  const agents = `/api/v1/projects/${project}/agents`
  const config = { model: 'builtin/echo', system_prompt: 'Be kind.', tools: ['current_time'] }
  const { body: agent } = await cadre.send('POST', agents, {
    body: {
      name: 'traveller',
      description: 'Goes abroad',
      metadata: { tags: ['eu'], team: 'blue' },
      config: { ...config, environment_variables: { TOKEN: 'not to be seen' } },
    },
  })
  const page = await cadre.open(`/p/${project}/agents/${agent.id}?tab=config`)
  await page.getByText('"TOKEN": "…"').waitFor()
  await page.getByRole('button', { name: 'More' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: 'Export as JSON' }).click(),
  ])
  const file = await readFile(await download.path())
  assert.ok(!file.includes('not to be seen'))

  const abroad = await createProject(cadre.send, 'abroad')
  await page.goto(`/p/${abroad.id}/agents/new`)
  const input = page.getByLabel('File of an agent')
  await input.setInputFiles({ name: 'list.json', mimeType: 'application/json', buffer: Buffer.from('[1]') })
  await page.getByText('list.json is no agent').first().waitFor()
  await input.setInputFiles({ name: 'traveller.json', mimeType: 'application/json', buffer: file })
  await page.getByText('Environment variables are not copied').waitFor()
  await page.getByRole('button', { name: 'Create and try' }).click()
  await page.getByRole('button', { name: 'Try', exact: true }).waitFor()
  const { body: list } = await cadre.send('GET', `${abroad.path}/agents`)
  const { body: made } = await cadre.send('GET', `${abroad.path}/agents/${list.agents[0].id}`)
  assert.deepEqual(
    [made.name, made.description, made.metadata.tags, made.metadata.team, made.config.system_prompt, made.config.tools],
    ['traveller', 'Goes abroad', ['eu'], 'blue', 'Be kind.', ['current_time']],
  )
  assert.equal(made.config.environment_variables, undefined)
  checkPage(page)
})

test(
  'an app is registered, changed, given a new secret and deleted, and its user ends its access',
  inBrowser,
  async () => {
    const page = await cadre.open('/settings/apps', { allowed: /400|404/ })
    await page.getByRole('button', { name: 'Register an app' }).click()
    const form = page.getByRole('dialog', { name: 'Register an OAuth app' })
    await form.getByLabel('Name').fill('Dashboard')
    await form.getByLabel('Redirect URIs').fill('http://dashboard.example.com/callback')
    await form.getByRole('button', { name: 'Register', exact: true }).click()
    await form.getByText('must be an https URL', { exact: false }).first().waitFor()
    await checkScreen(page, 'app-form-refused')
    await form.getByLabel('Redirect URIs').fill('https://dashboard.example.com/callback')
    await form.getByRole('button', { name: 'Register', exact: true }).click()
    const first = await saveSecret(page)
    await page.getByRole('table').getByRole('link', { name: 'Dashboard', exact: true }).click()
    const panel = page.getByRole('dialog', { name: 'Dashboard', exact: true })
    await panel.getByLabel('Name').fill('Dashboard EU')
    await panel.getByRole('button', { name: 'Save', exact: true }).click()
    const changed = page.getByRole('dialog', { name: 'Dashboard EU', exact: true })
    await changed.getByRole('button', { name: 'Rotate secret' }).click()
    await page.getByRole('button', { name: 'Replace secret' }).click()
    assert.notEqual(await saveSecret(page), first)
    await page.getByRole('table').getByRole('link', { name: 'Dashboard EU' }).waitFor()
    await checkScreen(page, 'own-apps')

    await cadre.sql`
    insert into oauth_grant (id, user_id, org_id, client_id, scopes, expires_at, ip, user_agent)
    select 'sess_' || repeat('0', 26), m.user_id, m.org_id, c.client_id, '{read}', now() + interval '1 day', '203.0.113.7', 'Dashboard/1'
    from member m join oauth_client c using (org_id) where c.name = 'Dashboard EU'`
    await page.getByRole('link', { name: 'Allowed by you' }).click()
    await page.getByText(`May see projects, agents and organizations. Access to ${cadre.url}/api/v1`).waitFor()
    await checkScreen(page, 'granted-apps')
    await page.getByRole('button', { name: 'End access of Dashboard EU' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End access' }).click()
    await page.getByText('You have allowed no app').waitFor()

    await page.getByRole('link', { name: 'Registered' }).click()
    await page.getByRole('table').getByRole('link', { name: 'Dashboard EU' }).click()
    await changed.getByRole('button', { name: 'Delete app' }).click()
    await page.getByLabel('Type Dashboard EU to confirm').fill('Dashboard EU')
    await page.getByRole('dialog', { name: 'Delete Dashboard EU' }).getByRole('button', { name: 'Delete app' }).click()
    await page.waitForURL(({ searchParams }) => !searchParams.has('panel'))
    await page.locator('table').getByText('Dashboard EU').waitFor({ state: 'detached' })
    const { body } = await cadre.send('GET', '/api/v1/auth/oauth-clients')
    assert.ok(body.oauth_clients.every(({ name }: { name: string }) => !name.startsWith('Dashboard')))
    checkPage(page)
  },
)

/** Opens every collapsed part of a form, except parameters of tools. */
async function openDetails(page: Page): Promise<void> {
  const summaries = page.locator('form details:not([open]) > summary').filter({ hasNotText: /^Arguments$/ })
  while ((await summaries.count()) > 0) await summaries.first().click()
}

/** Waits until a field says that it is not valid, in these words. */
async function refusedAt(field: Locator, message: RegExp): Promise<void> {
  await eventually(async () => {
    const text: string = await field.evaluate((element) =>
      (element.getAttribute('aria-describedby') ?? '')
        .split(' ')
        .map((id: string) => element.ownerDocument.getElementById(id)?.textContent ?? '')
        .join(' '),
    )
    return message.test(text) && (await field.getAttribute('aria-invalid')) === 'true'
  })
}

/** Reads the secret that is shown once, confirms that it is saved, and returns it. */
async function saveSecret(page: Page): Promise<string> {
  const secret = await page.getByTestId('secret').innerText()
  await page.getByLabel('I have saved it').check()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByTestId('secret').waitFor({ state: 'detached' })
  return secret
}

/** Runs the command of the page with a key instead of the placeholder, and returns its output. */
async function inShell(snippet: string): Promise<string> {
  const command = fileURLToPath(new URL('../../cadre.mjs', import.meta.url))
  const script = `cadre() { "${process.execPath}" "${command}" "$@"; }\n${snippet.replace('CADRE_API_KEY=…', '')}`
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], {
    env: { ...process.env, CADRE_API_KEY: cadre.key },
    timeout: 60_000,
  })
  return stdout
}

const rowOf = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(name) })

/**
 * Runs and times an action. The time is only printed, because it is promised for two free processors, which tests do
 * not have.
 */
async function measure(t: TestContext, what: string, act: () => Promise<void>): Promise<void> {
  const began_ms = performance.now()
  await act()
  t.diagnostic(`10,000 agents, ${what}: ${Math.round(performance.now() - began_ms)} ms`)
}

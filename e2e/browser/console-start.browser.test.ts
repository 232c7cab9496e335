import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
})

after(() => cadre?.stop())

/** The project that the first test makes, by its path. */
const project = '/p/1'

test('a new user creates a project and an agent and completes a task within a minute', inBrowser, async () => {
  const page = await cadre.open('/')
  const began_ms = performance.now()
  await page.getByRole('button', { name: 'Create a project' }).click()
  const name = page.getByRole('textbox', { name: 'Name' })
  await name.fill('-no')
  assert.ok(await page.getByRole('button', { name: 'Create', exact: true }).isDisabled(), 'a name that may not be')
  await name.fill('support-eu')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  await page.getByRole('button', { name: 'Create the agent echo' }).click()
  await page.getByRole('button', { name: 'Send a test task' }).click()
  await page.getByText('completed').first().waitFor()
  assert.ok(performance.now() - began_ms < 60_000)
  // The list also ticks steps that a program has done.
  await cadre.send('GET', '/api/v1/hello')
  await page.getByRole('heading', { name: /^Run it from your code ?: done/ }).waitFor()
  await checkScreen(page, 'first-steps')
  // What a program does elsewhere is no step of a project that has no agent to run.
  const { body: bare } = await cadre.send('POST', '/api/v1/projects', { body: { name: 'bare' } })
  await page.goto(`/p/${bare.id}/start`)
  await page.getByRole('heading', { name: /^Run it from your code ?: to do/ }).waitFor()
  await cadre.send('DELETE', `/api/v1/projects/${bare.id}`)

  const { body } = await cadre.send('GET', `/api/v1/projects${project.slice(2)}/tasks`)
  assert.equal(body.tasks[0].status, 'completed')
})

test('a selected agent is paused, the pause is undone, and the list shows each state live', inBrowser, async () => {
  const page = await cadre.open(`${project}/agents`)
  await page.getByLabel('Select echo').check()
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByText('1 agent is paused').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Undone').waitFor()
  await page.getByRole('row', { name: /echo/ }).getByText('running').waitFor()
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByRole('row', { name: /echo/ }).getByText('paused').waitFor()
  await checkScreen(page, 'agents')
  const { body } = await cadre.send('GET', `/api/v1/projects${project.slice(2)}/agents`)
  const [agent] = body.agents
  assert.equal(agent.status, 'paused')
  // A change by another user shows in the table without a reload.
  await cadre.send('POST', `/api/v1/projects${project.slice(2)}/agents/${agent.id}/start`)
  await page.getByRole('row', { name: /echo/ }).getByText('running').waitFor()
  checkPage(page)
})

test('a refused change of an agent is shown at its field, and a rollback can be undone', inBrowser, async () => {
  // The test causes the refusal.
  const page = await cadre.open(`${project}/agents`, { allowed: /400/ })
  await page.getByRole('link', { name: 'echo' }).click()
  await page.getByRole('heading', { name: /echo/ }).waitFor()
  const path = new URL(page.url()).pathname
  await checkScreen(page, 'agent')
  await page.getByRole('link', { name: 'Edit' }).click()
  await page.getByLabel('Temperature').fill('9')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.locator('[aria-invalid=true]:focus').waitFor()
  await checkScreen(page, 'agent-form-refused')
  await page.getByLabel('Temperature').fill('0.5')
  await page.getByLabel('Instructions').fill('Be brief.')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.waitForURL((url) => url.pathname === path)
  await goTo(page, `${path}?tab=config&version=0`)
  await page.getByText('Before').first().waitFor()
  await checkScreen(page, 'agent-config')
  await page.getByRole('button', { name: 'Roll back' }).last().click()
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
  await page.getByText('Rolled back').waitFor()
  const { body } = await cadre.send('GET', `/api/v1/projects${path.slice(2)}`)
  assert.equal(body.config.system_prompt ?? '', '')
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('The agent is as in version 1 again').waitFor()
  const { body: undone } = await cadre.send('GET', `/api/v1/projects${path.slice(2)}`)
  assert.equal(undone.config.system_prompt, 'Be brief.')
})

test('the other pages fit every screen and have no fault that axe can see', inBrowser, async () => {
  // Something long in the lists, which no telephone has room for.
  const own = `/api/v1/projects${project.slice(2)}`
  const { body } = await cadre.send('GET', `${own}/agents`)
  await cadre.send('POST', `${own}/agents/${body.agents[0].id}/tasks`, {
    body: { input: 'A long question. '.repeat(40) },
  })
  const page = await cadre.open(project, { allowed: /404/ })
  const pages: [string, string, RegExp][] = [
    // Its own name, not the one that stands there until the project is known.
    ['home', project, /^support-eu$/],
    ['projects', '/projects', /^Projects/],
    ['new-agent', `${project}/agents/new`, /agent/i],
    ['connect', `${project}/connect`, /^From clients you already have/],
    ['members', '/settings/members', /^Members/],
    ['requests', '/settings/requests', /^Request log/],
    ['system', '/settings/system', /^Configuration/],
    ['preferences', '/settings/preferences', /^Preferences/],
    ['audit', '/settings/audit', /^Audit log/],
    ['nothing', '/nowhere', /^Page not found/],
    ['no-project', '/p/999999999', /^Project not found/],
    ['no-task', `${project}/tasks/task_${'0'.repeat(26)}`, /^Task not found/],
  ]
  for (const [name, path, heading] of pages) {
    await goTo(page, path)
    await page.getByRole('heading', { name: heading }).first().waitFor()
    await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
    await checkScreen(page, name)
  }
  await goTo(page, '/projects')
  const cell = (column: string) => page.locator(`[data-row="${project.slice(3)}"] [data-column=${column}]`)
  await cell('agents')
    .getByRole('link', { name: /^[1-9]/ })
    .waitFor()
  await cell('last_activity').getByRole('time').waitFor()
})

test(
  'the audit log filters by the target of an entry, and its export has only the filtered entries',
  inBrowser,
  async () => {
    const page = await cadre.open('/settings/audit?action=agent.')
    await page.getByRole('link', { name: 'agent.created' }).last().click()
    const entry = page.getByRole('dialog')
    await entry.getByRole('rowheader', { name: 'config.model' }).waitFor()
    await checkScreen(page, 'audit-entry')
    await entry.getByRole('link', { name: /^only this: Target/ }).click()
    const filter = page.getByRole('button', { name: /^Target/ })
    await filter.waitFor()
    const target = new URL(page.url()).searchParams.get('target') ?? ''
    assert.match(target, /^agent_/)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ])
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\n')
    for (const line of lines) assert.equal((JSON.parse(line) as { target: string }).target, target)
    await filter.click()
    await filter.waitFor({ state: 'detached' })
    await page.getByLabel('Identifier or address, then Enter').fill('req_0')
    await page.keyboard.press('Enter')
    await page.getByText('No matching entries').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('request_id'), 'req_0')
    await page.context().close()
  },
)

test('keyboard shortcuts open the pages of the console, and are off while the user types', inBrowser, async () => {
  const page = await cadre.open(project)
  await page.getByRole('heading', { name: 'support-eu', level: 1 }).waitFor()
  // A machine that has lost its network may run the service itself: pages load all the same.
  await page.evaluate(`dispatchEvent(new Event('offline'))`)
  // The menu takes the very next letter, and its field stays where it is whatever is found.
  await page.keyboard.press('Control+k')
  await page.keyboard.type('members')
  const menu = page.getByRole('combobox')
  assert.equal(await menu.inputValue(), 'members')
  const before = await menu.boundingBox()
  await menu.fill('nothing is called so')
  await page.getByText('No results').waitFor()
  assert.deepEqual(await menu.boundingBox(), before)
  await page.keyboard.press('Escape')
  await menu.waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('a')
  // Home has a list of agents too, so the page that was asked for is waited for first.
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
  const row = page.getByRole('link', { name: 'echo', exact: true })
  await row.waitFor()
  await page.keyboard.press('j')
  await row.and(page.locator(':focus')).waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: /echo/ }).waitFor()
  await page.keyboard.press('Control+k')
  await menu.fill('g p members')
  assert.ok(await menu.isVisible(), 'what is typed goes nowhere')
  await menu.fill('Members')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Members' }).waitFor()
  // Outside of a project, they lead into the one that was open last.
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor()
  const task = page.locator('[data-row]').first().getByRole('link').first()
  await task.waitFor()
  await page.keyboard.press('j')
  await task.and(page.locator(':focus')).waitFor()
  await page.keyboard.press('x')
  await page.getByRole('checkbox', { name: /^Select/, checked: true }).waitFor()
  await page.keyboard.press('Control+k')
  await menu.fill('pause')
  await page.getByText('Type the name of an agent.').waitFor()
  for (const [text, done] of [
    ['pause ec', 'echo is paused'],
    ['resume ec', 'echo is running'],
  ] as const) {
    await menu.fill(text)
    await page.getByRole('option', { name: / echo/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByText(done).waitFor()
    // What was done is still said; keys do not wait for that.
    await page.keyboard.press('Control+k')
    await menu.waitFor()
  }
  await menu.fill('New project')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'New project' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'New project' }).waitFor({ state: 'detached' })
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor({ state: 'detached' })
  checkPage(page)
})

/** Opens an address like a link from another site. */
async function goTo(page: Page, path: string): Promise<void> {
  await page.goto(new URL(path, cadre.url).href)
}

test(
  'a user without a permission sees who has it, and can copy the error without the clipboard API',
  inBrowser,
  async () => {
    const { body: invitation } = await cadre.send('POST', '/api/v1/auth/invitations', { body: { role: 'viewer' } })
    const context = await cadre.browser.newContext({ baseURL: cadre.url })
    // As in a page that came by plain HTTP from another machine.
    await context.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    const page = await context.newPage()
    await page.goto(invitation.url)
    await page.getByLabel('E-mail address').fill('viewer@example.com')
    await page.getByLabel('Name').fill('Vera')
    await page.getByLabel('Password').fill('nine black swans')
    await page.getByRole('button', { name: 'Create account and join' }).click()
    await page.getByRole('heading', { name: /^Welcome to/ }).waitFor()

    // A form that would only be refused is not shown, however one comes to it.
    for (const [address, scope] of [
      ['/projects?panel=new', 'projects:write'],
      ['/webhooks?panel=new', 'projects:write'],
      [`${project}/usage?tab=budgets&panel=budget`, 'agents:write'],
    ] as const) {
      await page.goto(address)
      const shown = page.getByRole('dialog')
      await shown.getByText(`It needs ${scope}, which your role does not have`).waitFor()
      assert.equal(await shown.locator('input, textarea, select').count(), 0)
    }

    // What a role may not do is disabled with the reason; a page that was opened with another role is refused by the service.
    const { body: listed } = await cadre.send('GET', '/api/v1/auth/members')
    const { user_id } = listed.members.find(({ name }: { name: string }) => name === 'Vera')
    const become = (role: string) => cadre.send('PUT', `/api/v1/auth/members/${user_id}`, { body: { role } })
    await page.goto(`${project}/playground`)
    const message = page.getByRole('textbox', { name: 'Message' })
    const send = page.getByRole('button', { name: 'Send', exact: true })
    await message.fill('Hello')
    assert.match((await send.getAttribute('title')) ?? '', /^It needs tasks:write/)
    assert.equal((await become('member')).status, 200)
    await page.reload()
    await message.fill('Hello')
    await page.locator('button:not([aria-disabled=true])', { hasText: /^Send$/ }).waitFor()
    assert.equal((await become('viewer')).status, 200)
    await send.click()
    const alert = page.getByRole('alert')
    await alert
      .getByText('In this organization owners, admins, and members have it; owners or admins give roles.')
      .waitFor()
    await alert.getByRole('button', { name: 'Copy details' }).click()
    await message.fill('')
    await message.focus()
    await page.keyboard.press('Control+V')
    assert.match(await message.inputValue(), /status 403, code [^]*request req_/)
    await context.close()
  },
)

test('the page of a task links to its trace once the address of the tracing system is set', inBrowser, async () => {
  const { body } = await cadre.send('GET', `/api/v1/projects${project.slice(2)}/agents`)
  const { body: task } = await cadre.send(
    'POST',
    `/api/v1/projects${project.slice(2)}/agents/${body.agents[0].id}/tasks`,
    {
      body: { input: 'Hello' },
      headers: { traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01` },
    },
  )
  const page = await cadre.open('/settings/preferences')
  const field = page.getByLabel('Address of a trace')
  const save = page.getByRole('button', { name: 'Save the address' })
  for (const wrong of ['javascript:alert(1)//{trace_id}', 'https://traces.example.com/']) {
    await field.fill(wrong)
    assert.ok(await save.isDisabled(), wrong)
  }
  await field.fill('https://traces.example.com/trace/{trace_id}')
  const saved = page.waitForResponse((answer) => answer.request().method() === 'PUT')
  await save.click()
  await saved
  await goTo(page, `${project}/tasks/${task.id}`)
  const link = page.getByRole('link', { name: 'Open the trace' })
  assert.equal(await link.getAttribute('href'), `https://traces.example.com/trace/${'ab'.repeat(16)}`)
  checkPage(page)
})

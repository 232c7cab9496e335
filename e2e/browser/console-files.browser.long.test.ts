import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { eventually } from '../../server/test/harness.ts'
import { inBrowser } from './chromium.ts'
import { checkPage, checkScreen, startConsole, type TestConsole } from './console.ts'

let cadre: TestConsole
let project: string
let base: string

before(async () => {
  if (inBrowser.skip) return
  cadre = await startConsole()
  project = String((await post('/api/v1/projects', { name: 'shop' })).id)
  base = `/api/v1/projects/${project}`
})

after(() => cadre?.stop())

async function post(path: string, body: object): Promise<any> {
  const answer = await cadre.send('POST', path, { body })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
  return answer.body
}

async function agent(name: string, script: object[], tools: string[] = []): Promise<string> {
  const config = { model: 'builtin/script', tools, system_prompt: JSON.stringify(script) }
  return (await post(`${base}/agents`, { name, config })).id
}

/** A task of an agent, once this number of tasks have the status. */
async function taskOf(agent_id: string, status = 'completed', count = 1): Promise<any> {
  return eventually(async () => {
    const { body } = await cadre.send('GET', `${base}/agents/${agent_id}/tasks?status=${status}`)
    return body.tasks.length === count && body.tasks[0]
  }, 120_000)
}

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Drops or pastes a file onto a field like a user. */
async function give(field: Locator, how: 'drop' | 'paste', name: string, base64 = png): Promise<void> {
  await field.evaluate(
    (target: any, [type, filename, data]) => {
      const { DataTransfer, DragEvent, ClipboardEvent } = globalThis as any
      const transfer = new DataTransfer()
      transfer.items.add(new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], filename))
      const init = { bubbles: true, cancelable: true, dataTransfer: transfer, clipboardData: transfer }
      target.dispatchEvent(type === 'drop' ? new DragEvent('drop', init) : new ClipboardEvent('paste', init))
    },
    [how, name, base64] as const,
  )
}

/** Waits until a picture is loaded. */
async function isShown(page: Page, name: string): Promise<void> {
  const picture = page.getByRole('img', { name }).first()
  await eventually(() => picture.evaluate((image: any) => image.naturalWidth === 1), 60_000)
}

async function downloaded(page: Page, link: Locator): Promise<[name: string, text: string]> {
  const downloads = page.waitForEvent('download')
  await link.click()
  const download = await downloads
  return [download.suggestedFilename(), await readFile(await download.path(), 'utf8')]
}

const attached = (page: Page): Locator => page.getByRole('list', { name: 'Attached files' })
const typesOf = (content: { type: string }[]): string[] => content.map(({ type }) => type)
const saves = [
  { tool_calls: [{ name: 'save_file', arguments: { name: 'total.csv', content: 'total\n8.00\n' } }] },
  { text: 'Saved.' },
]

test(
  'the playground takes dropped and pasted files, its task shows them, and the file that the agent made can be downloaded',
  inBrowser,
  async () => {
    const id = await agent('saver', saves, ['save_file'])
    const page = await cadre.open(`/p/${project}/playground?agent=${id}`)
    const field = page.getByLabel('Message')
    await field.fill('What does it cost?')
    await give(field, 'drop', 'receipt.png')
    await give(field, 'paste', 'notes.txt', btoa('coffee 3.20'))
    await attached(page).getByRole('link', { name: 'notes.txt' }).waitFor()
    await isShown(page, 'receipt.png')
    await attached(page)
      .getByRole('listitem')
      .filter({ hasText: 'notes.txt' })
      .getByRole('button', { name: 'Remove' })
      .click()
    await checkScreen(page, 'playground-files')
    await page.getByRole('button', { name: 'Send' }).click()
    const made = await taskOf(id)
    assert.deepEqual(typesOf(made.input[0].content), ['image', 'text'])
    const total: [string, string] = ['total.csv', 'total\n8.00\n']
    const output = page.getByRole('region', { name: 'Output of saver' })
    assert.deepEqual(await downloaded(page, output.getByRole('link', { name: 'total.csv' })), total)
    await page.goto(`/p/${project}/tasks/${made.id}`)
    await isShown(page, 'receipt.png')
    const artifacts = page.getByRole('region', { name: 'Artifacts' })
    assert.deepEqual(await downloaded(page, artifacts.getByRole('link', { name: 'total.csv' })), total)
    await checkScreen(page, 'task-files')
    checkPage(page)
    await page.context().close()
  },
)

test('the test panel of an agent sends a file without text', inBrowser, async () => {
  const id = await agent('tried', saves, ['save_file'])
  const page = await cadre.open(`/p/${project}/agents/${id}/edit`)
  const field = page.getByLabel('Message')
  await field.fill('')
  await give(field, 'paste', 'tried.png')
  await isShown(page, 'tried.png')
  await checkScreen(page, 'agent-try-files')
  await page.getByRole('button', { name: 'Try', exact: true }).click()
  const made = await taskOf(id)
  assert.deepEqual(typesOf(made.input[0].content), ['image'])
  await page.getByRole('region', { name: 'Output' }).getByRole('link', { name: 'total.csv' }).waitFor()
  checkPage(page)
  await page.context().close()
})

test('a person answers the question of an agent with a picture, and the task shows it', inBrowser, async () => {
  const asks = [{ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }, { text: 'Thanks.' }]
  const id = await agent('asker', asks, ['request_input'])
  await post(`${base}/agents/${id}/tasks`, { input: 'Ask me.' })
  const waiting = await taskOf(id, 'waiting')
  const page = await cadre.open(`/p/${project}/tasks/${waiting.id}`)
  const field = page.getByLabel('The agent asks you something: answer it here')
  const send = page.getByRole('button', { name: 'Send' })
  await field.waitFor()
  assert.equal(await send.isDisabled(), true)
  await give(field, 'drop', 'answer.png')
  await isShown(page, 'answer.png')
  await field.fill('This one.')
  await checkScreen(page, 'task-answer-files')
  await send.click()
  await taskOf(id)
  const { body } = await cadre.send('GET', `${base}/tasks/${waiting.id}/steps`)
  const { parts } = body.steps.find(({ output }: any) => output?.parts)?.output ?? {}
  assert.deepEqual(typesOf(parts), ['image'])
  await page.getByRole('list', { name: 'Files of the result' }).waitFor()
  await isShown(page, 'answer.png')
  checkPage(page)
  await page.context().close()
})

test('a new thread, a message to a thread and an edited task take files', inBrowser, async () => {
  const id = await agent('talker', [{ text: 'Seen.' }])
  const page = await cadre.open(`/p/${project}/threads?panel=new&agent=${id}`)
  const dialog = page.getByRole('dialog')
  await give(dialog.getByLabel('First message'), 'drop', 'first.png')
  await isShown(page, 'first.png')
  await dialog.getByRole('button', { name: 'Send' }).click()
  const first = await taskOf(id)
  assert.deepEqual(typesOf(first.input[0].content), ['image'])

  await page.getByRole('list', { name: 'Files of the message' }).getByRole('img', { name: 'first.png' }).waitFor()
  const composer = page.getByLabel('Message to talker')
  await give(composer, 'paste', 'second.png')
  await isShown(page, 'second.png')
  await composer.fill('And this?')
  await checkScreen(page, 'thread-files')
  await page.getByRole('button', { name: 'Send' }).click()
  const second = await taskOf(id, 'completed', 2)
  assert.deepEqual([second.thread_id, typesOf(second.input[0].content)], [first.thread_id, ['image', 'text']])
  await attached(page).waitFor({ state: 'detached' })

  const plain = await post(`${base}/agents/${id}/tasks?wait=60`, { input: 'Without a picture.' })
  await page.goto(`/p/${project}/tasks/${plain.id}`)
  await page.getByRole('button', { name: 'Edit and run again' }).click()
  await give(dialog.getByLabel('Input'), 'drop', 'third.png')
  await isShown(page, 'third.png')
  await checkScreen(page, 'task-edit-files')
  await dialog.getByRole('button', { name: 'Run' }).click()
  const third = await taskOf(id, 'completed', 4)
  const [image, text] = third.input[0].content
  assert.deepEqual([image.type, text], ['image', { type: 'text', text: 'Without a picture.' }])
  checkPage(page)
  await page.context().close()
})

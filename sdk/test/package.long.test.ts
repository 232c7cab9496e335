import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'
import { inBrowser, launchBrowser } from '../../e2e/browser/chromium.ts'
import { makeToken, ownerOf } from '../../server/test/actors.ts'
import { startTestService, type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { sdkTypes } from '../../tools/sdk-types.ts'

const run = promisify(execFile)
const repository = join(import.meta.dirname, '..', '..')
const tsc = join(repository, 'node_modules', 'typescript', 'bin', 'tsc')
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
/** Without what the npm that runs the tests says of this repository. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))
/** Of all of the SDK, minified and compressed: the console has it in its first load. */
const bundleMax_bytes = 14_000
const timeout = { timeout: 240_000 }

let folder: string
let service: TestService
before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'cadre-consumer-')))
  service = await shareTestService()
})
after(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
})

/** Checks the types of files in the folder, as a strict project would. */
async function typeCheck(files: Record<string, string>, options: object = {}): Promise<string> {
  const compilerOptions = {
    target: 'es2024',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: ['node'],
    typeRoots: [join(repository, 'node_modules', '@types')],
    ...options,
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: Object.keys(files) }))
  return run(process.execPath, [tsc, '-p', folder]).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
}

/** Code with the languages named of a document. */
function snippets(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, code = '']) => code)
}

test('the package installs into an empty project, type checks there and does what its page says', timeout, async () => {
  const { stdout } = await run(npm, ['pack', '--json', '--pack-destination', folder], {
    cwd: join(repository, 'sdk'),
    env,
    shell: process.platform === 'win32',
  })
  const { filename, files } = JSON.parse(stdout.slice(stdout.indexOf('[')))[0]
  const names = (files as { path: string }[]).map(({ path }) => path)
  assert.deepEqual(names.filter((name) => !/^dist\/.+[.](js|d[.]ts)$/.test(name)).toSorted(), [
    'LICENSE',
    'README.md',
    'package.json',
  ])
  assert.ok(names.includes('dist/index.js') && names.includes('dist/index.d.ts'))
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  await run(npm, ['install', '--offline', '--no-audit', '--no-fund', join(folder, filename)], {
    cwd: folder,
    env,
    shell: process.platform === 'win32',
  })

  // What the page shows is one program, piece by piece.
  const page = await readFile(join(repository, 'sdk', 'README.md'), 'utf8')
  const program = snippets(page, 'ts').join('\n')
  const assertions = `
import type { Agent, CadreOptions, Task } from '@cadre/sdk'
import { Cadre } from '@cadre/sdk'
const client = new Cadre({} satisfies CadreOptions)
export const task: Promise<Task> = Promise.resolve(client.tasks.get('proj_1', 'task_1', { wait: 10 }))
export const agents: Promise<Agent[]> = client.project(1).agents.list({ status: 'running' }).toArray({ max: 3 })

interface Invoice {
  number: string
  total: number
}
const { tasks, schedules } = client.project(1)
const order = { input: { number: '4711' }, output_schema: { type: 'object' } as const, agent_version: 3 }
type Typed = Promise<Task<Invoice>>
export const created: Typed = Promise.resolve(tasks.create<Invoice>('agent_1', order, { query: { wait: 60 } }))
export const read: Typed = Promise.resolve(tasks.get<Invoice>('task_1'))
export const waited: Typed = tasks.wait<Invoice>('task_1', { timeout_ms: 1000 })
export const retried: Typed = Promise.resolve(tasks.retry<Invoice>('task_1', { from_step: 1 }))
export const triggered: Typed = Promise.resolve(schedules.trigger<Invoice>('schedule_1'))
export const ran: Typed = tasks.run<Invoice>('agent_1', order).on('text', () => {}).finalTask()
export const watched: Typed = tasks.stream<Invoice>('task_1').finalTask()
export const listed: Promise<Task<Invoice>[]> = tasks.list<Invoice>({ status: 'completed' }).toArray()
export const ofAgent: Promise<Task<Invoice>[]> = tasks.listOfAgent<Invoice>('agent_1').toArray()
export const outside: Typed = Promise.resolve(client.tasks.get<Invoice>(1, 'task_1'))
export const totals: Promise<number | undefined> = read.then(({ output }) => output?.data?.total)
export const plain: Promise<Task> = read
// @ts-expect-error there may be no data
export const always: Promise<number | undefined> = read.then(({ output }) => output?.data.total)
// @ts-expect-error invoices have no such member
export const unknownMember = read.then(({ output }) => output?.data?.sum)
// @ts-expect-error the data have no schema
export const untold = tasks.get('task_1').then(({ output }) => output?.data?.total)
// @ts-expect-error agents have no data
export const untyped = client.project(1).agents.get<Invoice>('agent_1')
// @ts-expect-error a version is a number
export const version = tasks.create('agent_1', { input: 'Hello', agent_version: 'newest' })
// @ts-expect-error there is no such state
export const state = client.agents.list(1, { status: 'asleep' })
// @ts-expect-error a name is needed
export const unnamed = client.agents.create(1, {})
// @ts-expect-error there is no such operation
export const none = client.agents.fly
// @ts-expect-error an id is missing
export const missing = client.agents.start(1)
`
  assert.equal(await typeCheck({ 'page.ts': program, 'assertions.ts': assertions }, { skipLibCheck: false }), '')
  const bundled = { skipLibCheck: false, module: 'esnext', moduleResolution: 'bundler' }
  assert.equal(await typeCheck({ 'page.ts': program, 'assertions.ts': assertions }, bundled), '', 'by a bundler')

  const { stdout: said } = await run(process.execPath, ['page.ts'], {
    cwd: folder,
    env: { ...env, CADRE_BASE_URL: service.url, CADRE_API_KEY: service.owner.api_key },
    timeout: 120_000,
  })
  const expected = snippets(page, 'text').join('')
  assert.equal(said, expected)
})

/** What a page does with the installed package; it gives what it has seen. */
const inPage = `async ({ baseURL, token }) => {
  const { Cadre, NotFoundError, verifyWebhook, WebhookVerificationError } = await import('/dist/index.js')
  const client = new Cadre({ baseURL, token: async () => token })
  const { id } = await client.projects.create({ name: 'of-a-page' })
  const project = client.project(id)
  const agent = await project.agents.create({ name: 'echo', config: { model: 'builtin/echo' } })
  await project.agents.waitUntil(agent.id, 'running', { timeout_ms: 60_000 })
  const types = []
  const run = project.tasks.run(agent.id, { input: 'Hello, page' }).on('event', ({ type }) => types.push(type))
  const task = await run.finalTask()
  const names = []
  for await (const { name } of project.agents.list({ limit: 1 })) names.push(name)
  const { etag, requestId } = await project.agents.get(agent.id).withResponse()
  const wrong = await project.agents.get('agent_that_is_not').catch((error) => error)
  const unsigned = await verifyWebhook('{}', {}, 'secret').catch((error) => error)
  return {
    output: task.output.content,
    last: types.at(-1),
    names,
    hasHeaders: etag !== null && requestId !== null,
    errors: [wrong instanceof NotFoundError && wrong.code, unsigned instanceof WebhookVerificationError],
  }
}`

test('the installed package works in a page of another origin', { ...timeout, ...inBrowser }, async (t) => {
  const dist = join(folder, 'node_modules', '@cadre', 'sdk', 'dist')
  const pages = createServer(async ({ url = '/' }, response) => {
    const isScript = /^\/dist\/[\w/-]+\.js$/.test(url)
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(
      isScript ? await readFile(join(dist, url.slice('/dist/'.length))) : '<!doctype html><title>Page</title>',
    )
  }).listen(0, '127.0.0.1')
  await once(pages, 'listening')
  const origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
  const open = await startTestService({ CADRE_CORS_ORIGINS: origin })
  const browser = await launchBrowser()
  t.after(async () => {
    await browser.close()
    await open.stop()
    pages.close()
    pages.closeAllConnections()
  })
  const { token } = await makeToken(open, ownerOf(open), ['admin'])
  const page = await browser.newPage()
  await page.goto(origin)
  const seen = await page.evaluate(`(${inPage})(${JSON.stringify({ baseURL: open.url, token })})`)
  assert.deepEqual(seen, {
    output: 'Hello, page',
    last: 'task.completed',
    names: ['echo'],
    hasHeaders: true,
    errors: ['agent_not_found', true],
  })
})

test('the types that the package has written out are those of the contract', timeout, async () => {
  const declared = JSON.stringify(join(repository, 'sdk', 'src', 'contract.ts'))
  const check = (module: string, verdict: string): string => `
import type * as declared from ${declared}
import type * as printed from './${module}'
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type Wrong<A, B> = { [K in keyof A]: K extends keyof B ? (Same<A[K], B[K]> extends true ? never : K) : K }[keyof A]
type Members = { [Id in keyof declared.Operations]: Wrong<declared.Operations[Id], printed.Operations[Id]> }
type Faults = { [Id in keyof Members as [Members[Id]] extends [never] ? never : Id]: Members[Id] }
type Events = {
  [Name in declared.OutboxEventName]: Same<declared.EventData<Name>, printed.EventData<Name>> extends true ? never : Name
}[declared.OutboxEventName]
export const faults: keyof Faults extends never ? true : { in: keyof Faults } = ${verdict}
export const events: [Events] extends [never] ? true : Events = true
export const same: [
  Same<keyof declared.Operations, keyof printed.Operations>,
  Same<declared.OutboxEventName, printed.OutboxEventName>,
  Same<declared.AgentState, printed.AgentState>,
  Same<declared.TaskState, printed.TaskState>,
  Same<declared.TaskEventType, printed.TaskEventType>,
  Same<declared.LiveEventType, printed.LiveEventType>,
  Same<declared.Issue, printed.Issue>,
] = [true, true, true, true, true, true, true]
`
  const options = { allowImportingTsExtensions: true, skipLibCheck: true, noErrorTruncation: true }
  // The check sees a difference: the same with another type of one member.
  const another = sdkTypes().replace('total_tasks: number', 'total_tasks: string')
  const files = {
    'printed.ts': sdkTypes(),
    'check.ts': check('printed.ts', 'true'),
    'another.ts': another,
    'check-another.ts': check('another.ts', "{ in: 'getAgent' }"),
  }
  assert.equal(await typeCheck(files, options), '')
})

test('the SDK is at most 14 KB with gzip in a browser, and has no schemas', timeout, async () => {
  const result = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: true,
      lib: { entry: join(repository, 'sdk', 'src', 'index.ts'), formats: ['es'], fileName: 'sdk' },
    },
  })
  const [bundle] = Array.isArray(result) ? result : [result]
  const code = 'output' in bundle ? bundle.output.map((part) => ('code' in part ? part.code : '')).join('') : ''
  assert.match(code, /task\.snapshot/)
  assert.doesNotMatch(code, /maxLength|additionalProperties/)
  const bytes = gzipSync(code).length
  assert.ok(bytes < bundleMax_bytes, `${bytes} bytes`)
})

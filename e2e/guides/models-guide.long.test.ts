import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { AgentConfigInput } from '../../contract/src/resources/agents.ts'
import { listedModelFacts, modelFacts } from '../../contract/src/models/model-facts.ts'
import { nativeProviders } from '../../contract/src/models/native-providers.ts'
import { TaskUsage } from '../../contract/src/tasks/tasks.ts'
import { readConfig } from '../../server/src/config/config.ts'
import { answerTokens, mapCallSettings } from '../../server/src/engine/models/call-settings.ts'
import {
  type FakeModelServer,
  type FakeRequest,
  startFakeModelServer,
} from '../../server/test/fake-models/fake-model-server.ts'
import { startTestService, type TestService } from '../../server/test/harness.ts'
import { cadreScript } from '../process.ts'

const root = new URL('../../', import.meta.url)
const guide = readFileSync(new URL('docs/guides/models.md', root), 'utf8')

interface Block {
  language: string
  text: string
}
const blocks: Block[] = [...guide.matchAll(/```(\w+)\n(.*?)```/gs)].map(([, language = '', text = '']) => ({
  language,
  text,
}))
const isStart = ({ language, text }: Block): boolean => language === 'sh' && /npm start$/m.test(text)
/** The commands that start the service: they say its settings. */
const starts = blocks.filter(isStart)
/** What is run in one shell: commands, and the program between them. */
const examples = blocks.filter((block) => block.language === 'ts' || (block.language === 'sh' && !isStart(block)))
const environment = Object.fromEntries(
  starts.flatMap(({ text }) =>
    [...text.matchAll(/^([A-Z_]+)=('[^']*'|\S+)/gm)].map(([, name = '', value = '']) => [
      name,
      // Values that a reader fills in.
      value.replace(/^'|'$/g, '').replace('…', 'x'),
    ]),
  ),
)

/** What the models of the guide's examples answer. */
function answerOf({ body }: FakeRequest): Parameters<FakeModelServer['next']>[0] {
  const asked = JSON.stringify(body)
  const time = { name: 'current_time', arguments: { time_zone: 'Europe/Lisbon' } }
  const rounds = asked.split('"function_call_output"').length - 1
  if (asked.includes('You sum up the earlier part')) return { do: 'answer', text: 'SUMMARY of two cities.' }
  if (asked.includes('capital of Portugal')) return { do: 'answer', text: 'Lisbon.' }
  if (asked.includes('Invoice 4711')) return { do: 'answer', text: '{"number":"4711","total":12.5}' }
  if (asked.includes('Porto')) return { do: 'answer', text: 'It rains.' }
  if (asked.includes('five cities')) {
    const usage = { input_tokens: 30_000 * (rounds + 1), output_tokens: 10 }
    return asked.includes('SUMMARY') ? { do: 'answer', text: 'Compared.' } : { do: 'answer', tool_calls: [time], usage }
  }
  if (rounds > 0) return { do: 'answer', text: 'It is noon.' }
  const reasoning = [{ summary: ['They want the time of Lisbon.'], encrypted: 'canary-encrypted' }]
  const usage = { input_tokens: 50, output_tokens: 40, reasoning_tokens: 32 }
  return { do: 'answer', reasoning, tool_calls: [time], usage }
}

// About 6,000 ms: the database, the service, and some 40 processes of the examples.
describe('the guide to models', () => {
  let provider: FakeModelServer
  let service: TestService
  let folder: string
  /** What each example wrote. */
  let written: string[]
  before(async () => {
    provider = await startFakeModelServer()
    provider.always(answerOf)
    const { CADRE_MODEL_PRICES = '', CADRE_MODEL_LIMITS = '' } = environment
    service = await startTestService({
      OPENAI_API_KEY: 'sk-fake',
      OPENAI_BASE_URL: provider.base_url,
      OPENAI_PROTOCOL: 'responses',
      ANTHROPIC_API_KEY: 'sk-ant-fake',
      ANTHROPIC_BASE_URL: provider.base_url,
      CADRE_PROVIDER_LOCAL_BASE_URL: provider.base_url,
      CADRE_EGRESS_ALLOW: 'loopback',
      CADRE_MODEL_PRICES,
      CADRE_MODEL_LIMITS,
    })
    folder = await mkdtemp(join(tmpdir(), 'cadre-models-guide-'))
    await mkdir(join(folder, '.cadre'))
    await writeFile(join(folder, '.cadre', 'credentials.json'), JSON.stringify({ api_key: service.owner.api_key }))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await installSdk(folder)
    written = await run(folder)
  })
  after(async () => {
    await service.stop()
    await provider.close()
    await rm(folder, { recursive: true })
  })

  /** Runs all examples in one shell, as a reader who copies them. */
  async function run(cwd: string): Promise<string[]> {
    const mark = '<<next>>'
    const commands = examples.map(({ language, text }) =>
      language === 'ts'
        ? `cat > invoice.ts <<'PROGRAM'\n${text}PROGRAM\nPROJECT=$PROJECT AGENT=$AGENT node invoice.ts`
        : text,
    )
    const cadre = `cadre() { CADRE_BASE_URL="$URL" CADRE_API_KEY="$KEY" CADRE_PROJECT="$PROJECT" node "${cadreScript}" "$@"; }`
    const script = ['set -eo pipefail', cadre, ...commands.flatMap((text) => [text, `printf '%s' '${mark}'`])].join(
      '\n',
    )
    const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
    const child = spawn(
      'bash',
      [
        '-c',
        script
          .replaceAll('http://127.0.0.1:8080', service.url)
          .replaceAll('https://models.example.com/v1', provider.base_url),
      ],
      {
        cwd,
        env: { PATH, HOME: cwd, URL: service.url },
      },
    )
    let [said, complaints] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
    const [code] = (await once(child, 'close')) as [number | null]
    assert.equal(code, 0, `${said}\n${complaints}`)
    return said.split(mark)
  }

  /** What the example that contains a text wrote: its last line, which is the answer of its last request. */
  function answerTo(text: string): any {
    const at = examples.findIndex((block) => block.text.includes(text))
    assert.ok(at >= 0, text)
    const line = written[at]!.trim().split('\n').at(-1)!
    // Answers of one example are written one after the other, without anything between them.
    return JSON.parse(line.slice(line.lastIndexOf('}{') + 1))
  }

  it('the guide to models starts the service with valid settings', () => {
    assert.ok(starts.length >= 5)
    assert.doesNotThrow(() => readConfig(environment))
    const settings = readFileSync(new URL('docs/reference/configuration.md', root), 'utf8')
    for (const [name] of guide.matchAll(/\b(?:CADRE|OPENAI|ANTHROPIC)_[A-Z_<>]*[A-Z]\b/g))
      assert.ok(settings.includes(`\`${name.replace(/^CADRE_PROVIDER_[A-Z]+_/, 'CADRE_PROVIDER_<NAME>_')}\``), name)
  })

  it('the guide to models names known models and existing members of a configuration', () => {
    for (const [, name = ''] of guide.matchAll(/[`"]((?:openai|anthropic)\/[\w.-]+)[`"]/g))
      assert.ok(listedModelFacts.has(name), name)
    const members = Object.keys(AgentConfigInput.properties)
    for (const [, name = ''] of guide.matchAll(/`config\.(\w+)/g)) assert.ok(members.includes(name), name)
    const callSettings = guide.split('\n## Call settings\n')[1]!.split('\n\n**Effort**')[0]!
    const rows = [...callSettings.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = '']) => name)
    assert.equal(rows.length, 5)
    assert.deepEqual(
      rows.filter((name) => !members.includes(name)),
      [],
    )
  })

  it('the examples of the guide to models get a response from a model of either provider', () => {
    for (const text of ['openai/gpt-5.6-sol', 'anthropic/claude-sonnet-5-5']) {
      const task = answerTo(`"model":"${text}"`)
      assert.deepEqual([task.status, task.output.content], ['completed', 'Lisbon.'])
    }
    assert.deepEqual(new Set(provider.requests.map(({ path }) => path)), new Set(['/v1/responses', '/v1/messages']))
    assert.deepEqual(provider.refused, [], 'the provider refused a request')
  })

  it('the guide to models marks for Anthropic what is to be cached, and leaves nothing at OpenAI', () => {
    const sent = (path: string) => provider.requests.filter((request) => request.path === path).map(({ body }) => body)
    for (const body of sent('/v1/messages')) {
      const marks = JSON.stringify(body).split('"cache_control"').length - 1
      assert.ok(marks > 0 && marks <= 4, String(marks))
    }
    const keys = sent('/v1/responses').map(({ store, prompt_cache_key }) => {
      assert.equal(store, false)
      return prompt_cache_key
    })
    // A call that sums up names nothing that comes again.
    const named = keys.filter((key) => key !== undefined)
    assert.ok(
      named.length > 0 && named.every((key) => typeof key === 'string' && /^agent_\w+:\d+$/.test(key)),
      JSON.stringify(keys),
    )
  })

  it('the guide to models gets an error for an unknown provider', () => {
    const { status, error } = answerTo('antropic/')
    assert.deepEqual([status, error.code], ['failed', 'provider_not_configured'])
    assert.match(error.message, /Configured: anthropic, builtin, local, ollama, openai\./)
  })

  it('the guide to models has a task of an organization run with its own key, and replaces that', () => {
    const task = answerTo('"name":"team"')
    assert.deepEqual([task.status, task.output.content], ['completed', 'Lisbon.'])
    const keys = provider.requests.map(({ headers }) => headers.authorization).filter((key) => key?.includes('team'))
    // The test of the provider, and the task.
    assert.deepEqual(keys, ['Bearer sk-of-our-team', 'Bearer sk-of-our-team'])
    const replaced = answerTo('sk-another-of-our-team')
    assert.deepEqual([replaced.name, replaced.key_preview, replaced.api_key], ['team', '…team', undefined])
  })

  it('the guide to models shows the reasoning that is for people, and sends the model what is not', () => {
    const { steps } = answerTo('What time is it in Lisbon?')
    assert.deepEqual(
      steps.map(({ type }: any) => type),
      ['model_call', 'tool_call', 'model_call'],
    )
    assert.equal(steps[0].output.reasoning_summary, 'They want the time of Lisbon.')
    assert.equal(steps[0].usage.reasoning_tokens, 32)
    assert.ok(!written.join('').includes('canary'))
    assert.ok(provider.requests.some(({ body }) => JSON.stringify(body).includes('canary-encrypted')))
  })

  it('the guide to models describes the effect of model settings as the service behaves', () => {
    const rows = [...guide.matchAll(/^\| `(\w+)` \| `(\w+)\/([\w.-]+)`[^|]* \| ([^|]+) \|$/gm)]
    assert.ok(rows.length >= 7)
    for (const [row, asked = '', name = '', model = '', said = ''] of rows) {
      const effort = asked as 'max'
      const facts = modelFacts(`${name}/${model}`)
      const kind = name as 'openai' | 'anthropic'
      const provider = { name, kind, base_url: '', api_key: '', protocol: nativeProviders[kind].protocols[0] }
      const { max_tokens } = answerTokens({ effort }, facts)
      const request = { model, effort, max_tokens, tools: [], temperature: undefined, service_tier: undefined }
      const { callSettings } = mapCallSettings(request, provider, facts)
      const used =
        callSettings.thinking_tokens === undefined
          ? callSettings.effort
          : `half: ${callSettings.thinking_tokens * 2 === max_tokens}`
      const expected = /^`(\w+)`/.exec(said)?.[1] ?? (said.includes('switched off') ? 'none' : 'half: true')
      assert.equal(used, expected, row)
    }
    const entries = answerTo('"temperature":0.2').logs.map(({ message }: any) => message)
    assert.ok(
      entries.some((message: string) => guide.includes(`The line says \`${message}\``)),
      entries.join('\n'),
    )
  })

  it('the guide to models shows the actual form of usage', () => {
    const shown = JSON.parse(blocks.find(({ language }) => language === 'json')!.text)
    assert.deepEqual(Object.keys(shown).toSorted(), Object.keys(TaskUsage.properties).toSorted())
  })

  it('the guide to models compacts a long conversation', () => {
    const { steps } = answerTo('five cities')
    const compaction = steps.find(({ type }: any) => type === 'compaction')
    assert.equal(compaction.output.summary, 'SUMMARY of two cities.')
    assert.equal(steps.at(-1).output.text, 'Compared.')
  })

  it('the guide to models gets data: with curl, the SDK and the command line', () => {
    const { status, output } = answerTo('"input": "Invoice 4711')
    assert.deepEqual([status, output.data], ['completed', { number: '4711', total: 12.5 }])
    assert.equal(written[examples.findIndex(({ language }) => language === 'ts')]!.trim(), '12.5')
    assert.deepEqual(answerTo('invoice.schema.json --data'), { number: '4711', total: 12.5 })
  })

  it('the guide to models gives an object, and asks for an older version', () => {
    const typed = answerTo('"input_schema"')
    assert.deepEqual([typed.status, typed.input], ['completed', { city: 'Porto' }])
    const older = answerTo('"agent_version":0')
    assert.deepEqual([older.status, older.agent_version, older.output.content], ['completed', 0, 'Lisbon.'])
  })

  it('the guide to models names only existing error codes', () => {
    const sources = globSync('server/src/engine/**/*.ts', { cwd: root.pathname })
      .filter((path) => !path.endsWith('.test.ts'))
      .map((path) => readFileSync(new URL(path, root), 'utf8'))
      .join('')
    const table = guide.split('\n## When a task fails\n')[1]!
    const codes = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)])
    assert.ok(codes.length > 10)
    for (const [, code] of codes) assert.ok(sources.includes(`'${code}'`), code)
  })
})

/** The SDK as it is in the repository, where a program finds the package. */
async function installSdk(folder: string): Promise<void> {
  const at = join(folder, 'node_modules', '@cadre')
  await mkdir(at, { recursive: true })
  await mkdir(join(at, 'sdk'))
  await writeFile(join(at, 'sdk', 'package.json'), '{"name":"@cadre/sdk","type":"module","exports":"./index.js"}')
  await writeFile(
    join(at, 'sdk', 'index.js'),
    `export * from ${JSON.stringify(new URL('sdk/src/index.ts', root).href)}`,
  )
}

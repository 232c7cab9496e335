import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { readConfig } from '../../server/src/config/config.ts'
import { eventually, startTestService } from '../../server/test/harness.ts'
import { createProject } from '../../server/test/fixtures.ts'
import { cadreScript } from '../process.ts'

const root = new URL('../..', import.meta.url).pathname
const guide = readFileSync(join(root, 'docs/guides/files.md'), 'utf8')
const blocks = [...guide.matchAll(/```(\w+)\n(.*?)```/gs)].map(([, language = '', text = '']) => ({ language, text }))
const mark = '<<next>>'

/** Costs about 5 s: it runs a dozen processes. */
it('the examples of the guide to files run as they stand', { timeout: 240_000 }, async (t) => {
  const service = await startTestService()
  t.after(() => service.stop())
  const project = await createProject(service.send, 'guide')
  const agents = `${project.path}/agents`
  const config = { model: 'builtin/echo' }
  const { body: agent } = await service.send('POST', agents, { body: { name: 'echo', config } })
  await eventually(async () => (await service.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  const folder = await mkdtemp(join(tmpdir(), 'cadre-files-guide-'))
  t.after(() => rm(folder, { recursive: true }))
  const sdk = join(folder, 'node_modules', '@cadre', 'sdk')
  await mkdir(sdk, { recursive: true })
  await writeFile(join(sdk, 'package.json'), '{"name":"@cadre/sdk","type":"module","exports":"./index.js"}')
  await writeFile(join(sdk, 'index.js'), `export * from ${JSON.stringify(join(root, 'sdk/src/index.ts'))}`)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')

  const commands = blocks
    .filter(({ text }) => !/npm start$/m.test(text))
    .flatMap(({ language, text }) => [
      language === 'ts'
        ? `cat > program.ts <<'PROGRAM'\n${text}PROGRAM\nPROJECT=$PROJECT AGENT=$AGENT node program.ts`
        : text,
      `printf '%s' '${mark}'`,
    ])
  const cadre = `cadre() { node ${JSON.stringify(cadreScript)} "$@"; }`
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: folder,
    CADRE: `${service.url}/api/v1`,
    KEY: service.owner.api_key,
    PROJECT: `proj_${project.id}`,
    AGENT: agent.id as string,
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    CADRE_PROJECT: `proj_${project.id}`,
  }
  const script = ['set -eo pipefail', cadre, ...commands].join('\n')
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder, env })
  const [uploaded, given, run, program, made] = stdout.split(mark)
  const file = JSON.parse(uploaded!)
  assert.deepEqual([file.name, file.media_type, file.bytes], ['bill.csv', 'text/csv', 33])
  const task = JSON.parse(given!)
  assert.equal(task.status, 'completed')
  assert.match(task.output.content, /What does it cost/)
  assert.match(run!, /What does it cost/)
  assert.match(program!, /^[0-9a-f]{64} task_/m)
  assert.match(made!, /^\{"artifacts":\[\{.*"name":"total\.txt".*\}\]\}8\.00$/)
})

it('the guide to files names existing settings', () => {
  const start = blocks.find(({ text }) => /npm start$/m.test(text))!.text
  const settings = [...start.matchAll(/([A-Z_\d]+)=(\S+)/g)].map(([, name, value]) => [name, value!.replace('…', 'x')])
  assert.doesNotThrow(() => readConfig(Object.fromEntries(settings)))
  const reference = readFileSync(join(root, 'docs/reference/configuration.md'), 'utf8')
  for (const [name] of guide.matchAll(/\bCADRE_[A-Z_\d]*[A-Z\d]\b/g)) assert.ok(reference.includes(`\`${name}\``), name)
})

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { startTestService } from '../../server/test/harness.ts'
import { createProject } from '../../server/test/fixtures.ts'
import { cadreScript } from '../process.ts'

const root = new URL('../..', import.meta.url).pathname

it('the tool on your machine of the guide to tools runs as it stands', async (t) => {
  const section = (await readFile(join(root, 'docs/guides/tools.md'), 'utf8'))
    .split('## A tool on your machine\n')[1]!
    .split('\n## ')[0]!
  const [server] = blocks(section, 'js')
  const [, serve, commands] = blocks(section, 'sh')
  const [, name = '', value = ''] = /^(\w+)=(\S+) npx cadre serve$/.exec(serve!) ?? []
  const service = await startTestService({ [name]: value })
  t.after(() => service.stop())
  const project = await createProject(service.send, 'store')

  const folder = await mkdtemp(join(tmpdir(), 'cadre-guide-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'stock.mjs'), server!)
  // A free port: another process may use that of the guide.
  const tool = spawn(process.execPath, [join(folder, 'stock.mjs')], {
    env: { ...process.env, PORT: '0', NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => tool.kill())
  const [said] = (await once(tool.stdout, 'data')) as [Buffer]
  const address = said.toString().trim()

  const script = `cadre() { "${process.execPath}" "${cadreScript}" "$@"; }\n${commands}`
  const env = {
    ...process.env,
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    CADRE_PROJECT: String(project.id),
    NODE_OPTIONS: '',
  }
  const { stdout } = await promisify(execFile)('sh', ['-ec', script.replace('http://127.0.0.1:4700', address)], {
    cwd: folder,
    env,
  })
  const [, promised] = /The task prints `([^`]+)`/.exec(section)!
  assert.ok(stdout.includes(promised!), stdout)
})

function blocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n([^]*?)\\n\`\`\``, 'g'))].map(([, block]) => block!)
}

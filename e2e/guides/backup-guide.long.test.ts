import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { maker } from '../../server/test/contract/full-installation.ts'
import { sender } from '../../server/test/harness.ts'
import { api_key, makeInstallations, succeed, type Installations } from '../scenarios/installations.ts'
import { cadreScript, startProcess } from '../process.ts'

const root = new URL('../..', import.meta.url).pathname

describe('the guide to backups', () => {
  let guide: string
  let installations: Installations
  let folder: string
  let env: Record<string, string>
  before(async () => {
    guide = await readFile(join(root, 'docs/guides/backup.md'), 'utf8')
    installations = await makeInstallations()
    folder = installations.folder
    await mkdir(join(folder, 'backups'))
    await mkdir(join(folder, 'etc'))
    env = installations.embedded('real')
    const service = await startProcess(env)
    try {
      await maker(sender(service.url, api_key))('/api/v1/projects', { name: 'in-the-backup' })
    } finally {
      await service.end()
    }
    await cp(join(folder, 'real', 'secret.key'), join(folder, 'etc', 'secret.key'))
  })
  after(() => installations.close())

  /** The first block of code below a heading, with the places of this test for those of the guide. */
  function block(heading: string, language: string): string {
    const text = guide.split(`\n## ${heading}\n`)[1]?.split(`\`\`\`${language}\n`)[1]?.split('\n```')[0]
    assert.ok(text, heading)
    return text
      .replaceAll('/var/backups/cadre', join(folder, 'backups'))
      .replaceAll('/etc/cadre', join(folder, 'etc'))
      .replaceAll('/srv/cadre', join(folder, 'restored'))
      .replaceAll('/tmp/cadre-drill', join(folder, 'drill'))
      .replaceAll('/opt/cadre', dirname(cadreScript))
  }
  async function run(script: string, more: Record<string, string>): Promise<{ stdout: string; stderr: string }> {
    const { PATH, HOME } = process.env as Record<string, string>
    const node = join(process.execPath, '..')
    const child = spawn('sh', ['-e', '-c', script], {
      cwd: dirname(cadreScript),
      env: { HOME: HOME!, PATH: `${node}:${PATH}`, CADRE_LOG_LEVEL: 'error', ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const said = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text))
    const [code] = await once(child, 'close')
    assert.equal(code, 0, `${script}\n${said.stderr}`)
    return said
  }

  it('the guide to backups makes a backup by its first command, and every night by cron without output', async () => {
    await run(block('Making backups', 'sh'), env)
    const [, cron] = /^15 3 \* \* \* (.+)$/.exec(block('Making backups', 'cron')) ?? []
    assert.deepEqual(await run(cron!, env), { stdout: '', stderr: '' })
    const files = await readdir(join(folder, 'backups'))
    assert.ok(files.length > 0 && files.every((name) => /^cadre-backup-.+\.tar\.gz$/.test(name)))
  })

  it('the guide to backups restores by its commands, and the service starts on what they made', async () => {
    await run(block('Restoring', 'sh'), { CADRE_ADMIN_API_KEY: api_key })
    const service = await startProcess(installations.embedded('restored'))
    const { body } = await sender(service.url, api_key)('GET', '/api/v1/projects')
    assert.deepEqual(
      body.projects.map(({ name }: { name: string }) => name),
      ['in-the-backup'],
    )
    await service.end()
  })

  it('the drill of the guide to backups leaves nothing behind', async () => {
    const port = await freePort()
    const drill = block('A drill, step by step', 'sh').replace('PORT=8099', `PORT=${port}`)
    const { stdout } = await run(drill, { CADRE_API_KEY: api_key, CADRE_METRICS_PORT: '0' })
    assert.match(stdout, /^Complete backup of /)
    assert.match(stdout, /"in-the-backup"/)
    await assert.rejects(stat(join(folder, 'drill')), { code: 'ENOENT' })
  })

  it('the guide to backups names every option', async () => {
    const help = ['backup', 'restore'].map((name) => succeed({}, [name, '--help']))
    const known = (await Promise.all(help)).map(({ stdout }) => stdout).join('')
    const calls = [...guide.matchAll(/(?:cadre|cadre\.mjs) (?:backup|restore)([^\n`|]*)|`(--[a-z-]+)/g)]
    const named = calls.flatMap(([, message = '', word = '']) => `${message} ${word}`.match(/--[a-z-]+/g) ?? [])
    assert.ok(new Set(named).size >= 5, String(named))
    for (const name of named) assert.ok(known.includes(name), name)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  await new Promise((closed) => server.close(closed))
  assert.ok(typeof address === 'object' && address)
  return address.port
}

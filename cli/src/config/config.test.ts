import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readSettings, writePrivately } from './config.ts'
import { readLogin, writeLogin } from './credentials.ts'

const home = mkdtempSync(join(tmpdir(), 'cadre-config-'))
after(() => rmSync(home, { recursive: true }))
const folder = join(home, 'work/deep')
const userFile = join(home, 'cadre/config.json')
const projectFile = join(home, 'work/.cadre.json')
mkdirSync(folder, { recursive: true })
writePrivately(userFile, {
  profiles: { default: { project: '4', base_url: 'http://four' }, staging: { project: '5' } },
})

test('a flag takes precedence over the environment, the project file, the user file and the default', () => {
  const env = { XDG_CONFIG_HOME: home, CADRE_PROJECT: '2' }
  const project = (from: object, flags: object) => readSettings({ ...env, ...from }, flags, folder).project
  writeFileSync(projectFile, JSON.stringify({ project: '3', base_url: 'http://three' }))
  assert.deepEqual(project({}, { project: '1' }), { value: '1', source: 'flag' })
  assert.deepEqual(project({}, {}), { value: '2', source: 'CADRE_PROJECT' })
  assert.deepEqual(project({ CADRE_PROJECT: '' }, {}), { value: '3', source: projectFile })
  assert.deepEqual(
    readSettings(env, {}, folder).base_url,
    { value: 'http://four', source: `${userFile} (default)` },
    'a project file cannot set the URL to which keys are sent',
  )
  rmSync(projectFile)
  assert.deepEqual(project({ CADRE_PROJECT: '' }, {}), { value: '4', source: `${userFile} (default)` })
  assert.deepEqual(project({ CADRE_PROJECT: '' }, { profile: 'staging' }), {
    value: '5',
    source: `${userFile} (staging)`,
  })
  assert.deepEqual(project({ CADRE_PROJECT: '', CADRE_PROFILE: 'nobody' }, {}), { value: undefined, source: 'not set' })
  assert.deepEqual(readSettings({ XDG_CONFIG_HOME: '/nowhere' }, {}, '/').base_url, {
    value: 'http://127.0.0.1:8080',
    source: 'default',
  })
})

test('the credentials file is readable only by its owner, also if it existed with another mode', () => {
  const env = { XDG_CONFIG_HOME: home }
  const file = join(home, 'cadre/credentials.json')
  writeFileSync(file, '{}')
  chmodSync(file, 0o644)
  writeLogin(env, 'default', { base_url: 'http://four', api_key: 'key' })
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(readLogin(env, 'default', 'http://four')?.api_key, 'key')
  assert.equal(readLogin(env, 'default', 'http://five'), undefined, 'it is for its service alone')
  assert.equal(readLogin(env, 'staging', 'http://four'), undefined, 'and for its profile')
})

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, realpath, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeRng, testSeed } from '../../server/test/rng.ts'
import { type TestService } from '../../server/test/harness.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { startCuttingProxy } from '../../sdk/test/cutting-proxy.ts'
import { generatePython, runPython, runUnitTests, sdkFolder, withPython } from './python.ts'

const seed = testSeed()
let service: TestService
let env: NodeJS.ProcessEnv
let folder: string
before(async () => {
  service = await shareTestService()
  env = { CADRE_BASE_URL: service.url, CADRE_API_KEY: service.owner.api_key }
  folder = await realpath(await mkdtemp(join(tmpdir(), 'cadre-python-')))
})
after(async () => {
  await service.stop()
  await rm(folder, { recursive: true })
})

test(
  `streams of the Python SDK that are cut at random lose and repeat no event (seed ${seed})`,
  withPython,
  async (t) => {
    const cut = await startCuttingProxy(service.url, makeRng(seed), { min: 300, max: 8_000, sure: 8 })
    t.after(() => cut.close())
    const worse = await startCuttingProxy(service.url, makeRng(seed + 1), { min: 1, max: 2500 })
    t.after(() => worse.close())
    const tests = await runUnitTests(['test_streams'], {
      ...env,
      CADRE_TEST_CUT_URL: cut.url,
      CADRE_TEST_WORSE_URL: worse.url,
    })
    assert.equal(tests, 6)
    assert.ok(cut.cuts >= 12, `only ${cut.cuts} cuts`)
    assert.ok(worse.cuts >= 5, `only ${worse.cuts} cuts of requests`)
  },
)

test('the Python SDK tries again what is safe to repeat, and nothing else', withPython, async () => {
  assert.ok((await runUnitTests(['test_retries'])) >= 10)
})

test('the Python SDK serves tools', withPython, async () => {
  assert.equal(await runUnitTests(['test_serving'], env), 7)
})

/** Code of a language in a document. */
function snippets(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, code = '']) => code)
}

test(
  'the wheel is the same bytes each time, installs without the network, and does what its page says',
  withPython,
  async () => {
    await generatePython()
    const copy = join(folder, 'copy')
    await cp(sdkFolder, copy, { recursive: true, filter: (path) => !path.includes('__pycache__') })
    await utimes(join(copy, 'src/cadre/client.py'), new Date(0), new Date(86_400_000))
    const wheels: string[] = []
    for (const [name, from] of Object.entries({ one: sdkFolder, two: copy })) {
      const out = join(folder, name)
      await runPython([join(from, 'build_backend/cadre_build.py'), out], { env: { SOURCE_DATE_EPOCH: '' } })
      assert.deepEqual((await readdir(out)).toSorted(), ['cadre_sdk-0.1.0-py3-none-any.whl', 'cadre_sdk-0.1.0.tar.gz'])
      for (const file of await readdir(out))
        wheels.push(
          createHash('sha256')
            .update(await readFile(join(out, file)))
            .digest('hex'),
        )
    }
    assert.deepEqual(wheels.slice(0, 2), wheels.slice(2))

    const venv = join(folder, 'venv')
    await runPython(['-m', 'venv', '--without-pip', venv])
    const site = join(venv, 'site')
    // As pip installs a wheel of pure Python: what is in it, unpacked. Debian's Python has no pip.
    await runPython(['-m', 'zipfile', '-e', join(folder, 'one/cadre_sdk-0.1.0-py3-none-any.whl'), site])
    const installed = { cwd: folder, env: { ...env, PYTHONPATH: site } }
    const { stdout: version } = await runPython(
      ['-c', 'import importlib.metadata as m; print(m.version("cadre-sdk"), m.requires("cadre-sdk"))'],
      installed,
    )
    const packageJson = JSON.parse(await readFile(join(sdkFolder, '../package.json'), 'utf8'))
    assert.equal(version.trim(), `${packageJson.version} None`)

    const page = await readFile(join(sdkFolder, 'README.md'), 'utf8')
    const { stdout } = await runPython(['-W', 'error', '-c', snippets(page, 'python').join('\n')], installed)
    assert.equal(stdout, snippets(page, 'text').join(''))
  },
)

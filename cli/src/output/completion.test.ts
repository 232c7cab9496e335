import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { eventually } from '../../../server/test/harness.ts'
import { Runner } from '../../test/runner.ts'

const runner = new Runner()
let home: string
before(async () => {
  home = await mkdtemp(join(tmpdir(), 'cadre-completion-'))
  for (const shell of ['bash', 'zsh', 'fish'])
    await writeFile(join(home, shell), (await runner.run(['completion', shell], { HOME: home })).stdout)
})
after(async () => {
  runner.stop()
  await rm(home, { recursive: true })
})

/** Typed words, and their unique completion. */
const started = [
  ['cadre approv', 'approvals'],
  ['cadre agents rest', 'restart'],
  ['cadre tasks run --thr', '--thread'],
] as const

function without(shell: string): string | false {
  return spawnSync(shell, ['--version']).error ? `SKIPPED: ${shell} is not installed` : false
}

test('Tab completes a word in bash', { skip: without('bash') }, () => {
  for (const [line, word] of started) {
    const ask = `source ${home}/bash; COMP_WORDS=(${line}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _cadre; echo "\${COMPREPLY[*]}"`
    assert.equal(spawnSync('bash', ['-c', ask]).stdout.toString().trim(), word)
  }
})

test('a word is completed in fish', { skip: without('fish') }, () => {
  const env = { PATH: process.env.PATH, HOME: home }
  for (const [line, word] of started) {
    const { stdout } = spawnSync('fish', ['--no-config', '-c', `source ${home}/fish; complete -C '${line}'`], { env })
    assert.equal(stdout.toString().trim(), word)
  }
})

test('a word is completed in zsh by the Tab key', { skip: without('zsh') || without('script') }, async (t) => {
  const env = { PATH: process.env.PATH, HOME: home, TERM: 'xterm' }
  const shell = spawn('script', ['-qfec', 'zsh -f -i', '/dev/null'], { env })
  t.after(() => shell.kill('SIGKILL'))
  let text = ''
  shell.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const shown = (word: string) => eventually(async () => stripVTControlCharacters(text).includes(word))
  shell.stdin.write(`source ${home}/zsh; echo "it is $((1 + 1))"\n`)
  // Input before the line editor is ready would be lost; it then prints `ready`.
  const ready = '\u001B[?2004h'
  await eventually(async () => text.split('it is 2\r\n')[1]?.includes(ready))
  for (const [line, word] of started) {
    text = ''
    shell.stdin.write(`${line}\t`)
    await shown(`${line.slice(0, line.lastIndexOf(' '))} ${word}`)
    text = ''
    shell.stdin.write('\u0003')
    await eventually(async () => text.includes(ready))
  }
})

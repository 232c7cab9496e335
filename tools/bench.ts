import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * `npm run bench` runs every script of `bench/` one after the other, `npm run bench -- http growth` those of these names;
 * what follows `--` goes to the script: `npm run bench -- http -- --rounds 5`. `npm run bench -- --list` tells what there is.
 */
const folder = join(import.meta.dirname, '..', 'bench')
const terms = process.argv.slice(2)
const options = terms.indexOf('--')
const [names, rest] = options < 0 ? [terms, []] : [terms.slice(0, options), terms.slice(options + 1)]

/** What the others are made of, rather than measurements. */
const parts = new Set(['costs', 'figures'])
const scripts = (await readdir(folder))
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => name.slice(0, -'.ts'.length))
  .filter((name) => !parts.has(name))
  .toSorted()

const unknown = names.filter((name) => name !== '--list' && !scripts.includes(name))
if (unknown.length > 0) {
  console.error(`There is no ${unknown.join(' or ')} in bench/: there are ${scripts.join(', ')}.`)
  process.exitCode = 1
} else if (names.includes('--list')) {
  for (const name of scripts) console.log(`${name.padEnd(12)}${await subjectOf(name)}`)
} else {
  for (const name of names.length > 0 ? names : scripts) {
    console.log(`\n# ${name}: ${await subjectOf(name)}\n`)
    const child = spawn(process.execPath, [join(folder, `${name}.ts`), ...rest], { stdio: 'inherit' })
    const stop = (): boolean => child.kill('SIGTERM')
    process.on('SIGTERM', stop)
    const [code] = (await once(child, 'exit')) as [number | null]
    process.off('SIGTERM', stop)
    if (code !== 0) {
      process.exitCode = code ?? 1
      break
    }
  }
}

/** The first sentence of what a script says of itself. */
async function subjectOf(name: string): Promise<string> {
  const text = await readFile(join(folder, `${name}.ts`), 'utf8')
  const message = /\/\*\*(.*?)\*\//s.exec(text)?.[1]?.replaceAll(/\s*\n \*\s*/g, ' ') ?? ''
  return /^.*?[.:;](?=\s|$)/.exec(message.trim())?.[0].slice(0, -1) ?? ''
}

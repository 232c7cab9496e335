import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { load, machine } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * Compares Cadre over HTTP with the engines it may replace, and each with the limit measured in the same minute: SELECT, page and INSERT
 * of the database, and the fake model called directly.
 *
 * Drives a harness for peers, a folder with `run.mjs`, which starts each peer and Cadre with the same database, model and load. With
 * `--svg` it also writes the plot that `bench/README.md` shows.
 */
const options = readOptions({
  /** The folder of the harness. */
  harness: { type: 'string' },
  targets: { type: 'string', default: 'ours,dbos,restate,mastra-pg,fastify-pg' },
  tests: { type: 'string', default: 'get,list,create,task,tool,ttft' },
  runs: { type: 'string', default: '3' },
  secs: { type: 'string', default: '4' },
  /** A file of results of an earlier run, to be printed instead of a new run. */
  results: { type: 'string' },
  svg: { type: 'string' },
})

interface Rate {
  rps: number
  p50: number
  of_select?: number
  of_rawlist?: number
  of_insert?: number
}

/** What the harness measured of one target; `n/a` where the target has no such thing. */
interface Target {
  label: string
  get?: Record<string, Rate> | 'n/a'
  list?: Record<string, Rate> | 'n/a'
  create?: Record<string, Rate> | 'n/a'
  task?: Record<string, Rate> | 'n/a'
  tool?: Record<string, Rate> | 'n/a'
  ttft?: { over_ms: number } | 'n/a'
  rss_after?: { rss_mb: number }
}

type Results = Record<string, Target>

const home = process.env['PEERS_HOME'] ?? join(tmpdir(), 'peers')
const results: Results | undefined = options.results
  ? (JSON.parse(await readFile(options.results, 'utf8')) as Results)
  : await measure()
if (results) {
  for (const line of table(results)) console.log(line)
  if (options.svg) await writeFile(options.svg, plot(results))
}

async function measure(): Promise<Results | undefined> {
  if (options.harness === undefined) {
    console.error('Nothing was measured: --harness names the folder of the harness for peers.')
    process.exitCode = 1
    return undefined
  }
  const harness = resolve(options.harness)
  const run = join(harness, 'run.mjs')
  const peers = options.targets.split(',').filter((name) => name !== 'ours')
  const missing = [run, join(home, 'tools')].filter((path) => !existsSync(path))
  if (missing.length > 0) {
    console.error(`Nothing was measured: ${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} not there.
The harness for peers is a folder that --harness names. Install the peers with it once (needs npm and wrk):
  PEERS_HOME=${home} node ${run} --setup --target ${peers.join(',')}`)
    process.exitCode = 1
    return undefined
  }
  console.log(`${machine()}\n`)
  const folder = await mkdtemp(join(tmpdir(), 'cadre-peers-'))
  const out = join(folder, 'results.json')
  try {
    const args = ['--spec', join(harness, 'ours.mjs'), '--target', options.targets, '--tests', options.tests]
    const child = spawn(
      process.execPath,
      [run, ...args, '--runs', options.runs, '--secs', options.secs, '--out', out],
      {
        stdio: 'inherit',
        env: { ...process.env, PEERS_HOME: home, OURS_DIR: join(import.meta.dirname, '..') },
      },
    )
    const stop = (): boolean => child.kill('SIGINT')
    process.on('SIGTERM', stop)
    const [code] = (await once(child, 'exit')) as [number | null]
    process.off('SIGTERM', stop)
    if (code !== 0) {
      process.exitCode = code ?? 1
      return undefined
    }
    console.log(`\nLoad at the end ${load().toFixed(2)}\n`)
    return JSON.parse(await readFile(out, 'utf8')) as Results
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function rate(of: Record<string, Rate> | 'n/a' | undefined, callers: 'c1' | 'c16' | 'c64'): Rate | undefined {
  return of === undefined || of === 'n/a' ? undefined : of[callers]
}

function figure(value: number | undefined, digits = 3): string {
  return value === undefined ? '–' : String(Number(value.toPrecision(digits)))
}

/** A Markdown table: a row a measurement, a column a target. */
function table(all: Results): string[] {
  const targets = Object.values(all)
  const rows: [string, (of: Target) => string][] = [
    ['Task, 16 callers, /s', ({ task }) => figure(rate(task, 'c16')?.rps)],
    ['Task, one caller, ms p50', ({ task }) => figure(rate(task, 'c1')?.p50)],
    ['Tool round, 16 callers, /s', ({ tool }) => figure(rate(tool, 'c16')?.rps)],
    ['First token over the model, ms', ({ ttft }) => figure(ttft === 'n/a' ? undefined : ttft?.over_ms)],
    ['GET agent, 1 connection, ms p50', ({ get }) => figure(rate(get, 'c1')?.p50)],
    ['GET agent, 64 connections, of SELECT', ({ get }) => figure(rate(get, 'c64')?.of_select, 2)],
    ['List 20, 16 connections, of the raw page', ({ list }) => figure(rate(list, 'c16')?.of_rawlist, 2)],
    ['Create agent, 16 connections, of INSERT', ({ create }) => figure(rate(create, 'c16')?.of_insert, 2)],
    ['Memory after load, MB', ({ rss_after }) => figure(rss_after?.rss_mb)],
  ]
  return [
    `| | ${targets.map(({ label }) => label).join(' | ')} |`,
    `|---|${targets.map(() => '---|').join('')}`,
    ...rows.map(([name, of]) => `| ${name} | ${targets.map(of).join(' | ')} |`),
  ]
}

/** Tasks and tool rounds a second of each target, as horizontal bars. */
function plot(all: Results): string {
  const series = [
    { name: 'Task with one model call', of: ({ task }: Target) => rate(task, 'c16')?.rps, color: '#4c6ef5' },
    { name: 'Task with a tool round', of: ({ tool }: Target) => rate(tool, 'c16')?.rps, color: '#99a9f7' },
  ]
  const bars = Object.values(all).flatMap((target, group) =>
    series.map(({ of, color }, nth) => ({
      label: nth === 0 ? target.label : '',
      value: of(target) ?? 0,
      color,
      y: 44 + group * 48 + nth * 19,
    })),
  )
  const most = Math.max(...bars.map(({ value }) => value), 1)
  const height = 44 + Object.keys(all).length * 48 + 8
  const parts = bars.map(({ label, value, color, y }) => {
    const width = Math.round((value / most) * 380)
    return [
      label && `<text x="212" y="${y + 13}" text-anchor="end">${escaped(label)}</text>`,
      `<rect x="220" y="${y}" width="${width}" height="17" fill="${color}"/>`,
      `<text x="${226 + width}" y="${y + 13}">${Math.round(value)}</text>`,
    ].join('')
  })
  const legend = series.map(
    ({ name, color }, nth) =>
      `<rect x="${220 + nth * 210}" y="14" width="12" height="12" fill="${color}"/><text x="${238 + nth * 210}" y="24">${name}, /s</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 ${height}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Tasks a second with 16 callers">
<rect width="680" height="${height}" fill="#ffffff"/>
${[...legend, ...parts].join('\n')}
</svg>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

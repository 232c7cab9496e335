import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { type SettingError, type Environment, inspectConfig, type Reading } from '../config/config.ts'
import { defineCommand } from './command.ts'

/** A setting as printed. */
interface ShownSetting {
  section: string
  name: string
  /** A secret is only `set` or `unset`. */
  value: string | null
  is_secret: boolean
  /** `default` also without a default; `value` is then null. */
  source: 'environment' | '.env' | 'file' | 'default'
  /** The file with a secret's value. */
  file?: string
  fault?: string
}

/** `cadre config check`: shows the settings that the service would start with. */
export const configCheck = defineCommand({
  description:
    'Reads the environment and .env as the service does, and lists each setting with its value and where the value comes from. ' +
    'Of a secret it prints only whether it is set. Warns about variables that look like settings and are not. Opens and connects ' +
    'to nothing.',
  examples: ['cadre config check', 'cadre config check --json'],
  arguments: [],
  options: { json: { type: 'boolean', description: 'Print one JSON object.' } },
  exits: { 1: 'The settings have errors; standard error lists them.' },
  run: async ({ env, options, print, note }) => {
    const { readings, faults, warnings } = inspectConfig(env)
    const settings = readings.map((reading) => shown(reading, faults, env, dotEnv()))
    if (options.json) print(JSON.stringify({ valid: faults.length === 0, settings, faults, warnings }, null, 2))
    else {
      print(table(settings))
      for (const { name, problem, allowed } of faults) note(`${name}: ${problem}. Allowed: ${allowed}.`)
      for (const warning of warnings) note(warning)
      note(faults.length === 0 ? 'The settings are valid.' : 'The service does not start with these settings.')
    }
    return faults.length === 0 ? 0 : 1
  },
})

/** The variables of `.env`; empty without the file. */
function dotEnv(): Environment {
  try {
    return parseEnv(readFileSync('.env', 'utf8'))
  } catch {
    return {}
  }
}

function shown(reading: Reading, faults: readonly SettingError[], env: Environment, dot: Environment): ShownSetting {
  const { section, name, is_secret, variable, file, text } = reading
  const fault = faults.find((known) => known.name === name || known.name === `${name}_FILE`)
  const source = (): ShownSetting['source'] => {
    if (variable === null) return 'default'
    if (file !== undefined) return 'file'
    return dot[variable] === env[variable] ? '.env' : 'environment'
  }
  return {
    section,
    name,
    value: is_secret ? (variable === null ? 'unset' : 'set') : text,
    is_secret,
    source: source(),
    ...(file === undefined ? {} : { file }),
    ...(fault === undefined ? {} : { fault: fault.problem }),
  }
}

const valueMax = 60

/** One line per setting, in columns, under the titles of their sections. */
function table(settings: readonly ShownSetting[]): string {
  const sections = Map.groupBy(settings, ({ section }) => section)
  const nameWidth = Math.max(...settings.map(({ name }) => name.length))
  const valueWidth = Math.min(valueMax, Math.max(...settings.map((setting) => cell(setting).length)))
  const line = (setting: ShownSetting): string => {
    const { name, source, file, fault } = setting
    const from = source === 'file' ? `file ${file}` : cell(setting) === 'unset' ? '' : source
    const end = fault === undefined ? from : `${from}  ERROR: ${fault}`
    return `  ${name.padEnd(nameWidth)}  ${cell(setting).padEnd(valueWidth)}  ${end}`.trimEnd()
  }
  return [...sections].map(([title, members]) => [title, ...members.map(line)].join('\n')).join('\n\n')
}

/** A value for its column: one line, cut. */
function cell({ value }: ShownSetting): string {
  if (value === null) return 'unset'
  const line = /\p{Cc}/u.test(value) ? JSON.stringify(value) : value
  return line.length > valueMax ? `${line.slice(0, valueMax - 1)}…` : line
}

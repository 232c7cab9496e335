import { knownAddresses } from '#contract/models/known-addresses.ts'
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { readSsoProviders, type SsoConfig } from './config-sso.ts'
import { providerSettings, sections, type Setting, type Settings, takenProviders } from './config-settings.ts'
import { nearest } from '../platform/nearest.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'

/** A model server with the OpenAI protocol; its name is the part before the slash in `name/model`. */
export interface ProviderConfig {
  name: string
  base_url: string
  api_key?: string
  protocol?: ModelProtocol
}

/**
 * The environment as one typed value. Unset lists are empty, and unset optional settings undefined. Folders are absolute,
 * and URLs have no slash at the end.
 */
export type Config = { [Key in keyof Settings]: Settings[Key] extends Setting<infer Value> ? Value : never } & {
  providers: ProviderConfig[]
  /** Identity providers, by name. */
  sso: SsoConfig[]
  /** Names of variables that were set; for a secret from a file, the name without `_FILE`. */
  given: ReadonlySet<string>
  /** Value and source of each setting, for display; without values of secrets. */
  readings: readonly Reading[]
  /** Every secret that was set, so that logs can redact it. */
  secrets: readonly string[]
  /** A sentence for each variable that is ignored; they are logged. */
  warnings: string[]
}

/** The error of one variable, without values of secrets. */
export interface SettingError {
  name: string
  problem: string
  allowed: string
}

/** The environment is invalid. The message has a line for each error, so that all can be fixed at once. */
export class ConfigError extends Error {
  readonly faults: readonly SettingError[]
  constructor(faults: readonly SettingError[]) {
    const lines = faults.map(({ name, problem, allowed }) => `  ${name}: ${problem}. Allowed: ${allowed}.`)
    super(`The configuration has ${faults.length === 1 ? 'an error' : `${faults.length} errors`}:\n${lines.join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Value and source of a setting, for display. */
export interface Reading {
  section: string
  name: string
  is_secret: boolean
  /** The variable that sets it, or `<name>_FILE` for a file; null for the default. */
  variable: string | null
  /** The file that `variable` names. */
  file?: string
  /** The text that was set, or the default; null without either, and for secrets. */
  text: string | null
}

/** The parsed environment; `config` is undefined if there are errors. */
export interface Inspection {
  config: Config | undefined
  readings: Reading[]
  faults: SettingError[]
  warnings: string[]
}

/** Reads the configuration; an empty value counts as unset. Throws a `ConfigError` with all errors. */
export function readConfig(env: Environment = process.env): Config {
  const { config, faults } = inspectConfig(env)
  if (!config) throw new ConfigError(faults)
  return config
}

/** Reads the configuration, and reports errors and the value and source of every setting. Never throws. */
export function inspectConfig(env: Environment): Inspection {
  const reader = new Reader(env)
  const values = Object.entries(sections).flatMap(([title, section]) => {
    reader.section = title
    return Object.entries<Setting<unknown>>(section).map(([key, setting]) => [key, reader.read(setting)])
  })
  requireWholeStore(reader, Object.fromEntries(values) as Config)
  reader.section = 'Further model servers'
  const providers = readProviders(reader)
  reader.section = 'Identity providers'
  const sso = readSsoProviders(reader)
  const { readings, faults } = reader
  const warnings = reader.unknownNames().map((name) => unknown(name, readings))
  const given = new Set(readings.filter(({ variable }) => variable !== null).map(({ name }) => name))
  const { secrets } = reader
  const config = { ...Object.fromEntries(values), providers, sso, given, readings, secrets, warnings } as Config
  return { config: faults.length > 0 ? undefined : config, readings, faults, warnings }
}

/** Reports an incomplete S3 store: bucket and keys must be set together. */
function requireWholeStore(reader: Reader, config: Config): void {
  const { files_s3_bucket: bucket, files_s3_access_key_id: id, files_s3_secret_access_key: key } = config
  const named = { BUCKET: bucket, ACCESS_KEY_ID: id, SECRET_ACCESS_KEY: key, ENDPOINT: config.files_s3_endpoint }
  if (Object.values(named).every((value) => value === undefined)) return
  for (const name of ['BUCKET', 'ACCESS_KEY_ID', 'SECRET_ACCESS_KEY'] as const) {
    const variable = `CADRE_FILES_S3_${name}`
    const isFaulty = reader.faults.some((fault) => fault.name === variable)
    if (named[name] === undefined && !isFaulty)
      reader.fault(variable, 'it is unset, but other settings of the store are set', 'all of them, or none')
  }
}

function unknown(name: string, readings: readonly Reading[]): string {
  const names = readings.flatMap((known) => (known.is_secret ? [known.name, `${known.name}_FILE`] : [known.name]))
  const meant = nearest(name, names)
  const advice = meant ? `did you mean ${meant}?` : 'see .env.example for all settings.'
  return `${name} is not a setting and is ignored; ${advice}`
}

/** Variables of the command line and the SDKs, which a shell may have exported. */
const ofClients = new Set(
  ['API_KEY', 'BASE_URL', 'PROJECT', 'PROFILE', 'OAUTH_CLIENT_ID'].map((name) => `CADRE_${name}`),
)

/** The URL of the service: as configured, or else where it listens. `port` is the actual port, never 0. */
export function publicUrl(config: Pick<Config, 'host' | 'public_url'>, port: number): string {
  if (config.public_url) return config.public_url
  const host = ['0.0.0.0', '::'].includes(config.host)
    ? 'localhost'
    : isIPv6(config.host)
      ? `[${config.host}]`
      : config.host
  return `http://${host}:${port}`
}

/** Reads settings one by one, and records known names, values and errors. */
class Reader {
  readonly env: Environment
  readonly faults: SettingError[] = []
  readonly readings: Reading[] = []
  readonly secrets: string[] = []
  /** The section of the following settings. */
  section = ''
  readonly #known = new Set<string>()

  constructor(env: Environment) {
    this.env = env
  }

  read<T>(setting: Setting<T>): T | undefined {
    const given = this.#text(setting)
    this.readings.push(this.#reading(setting, given))
    if (setting.secret && given !== undefined) this.secrets.push(...secretsIn(given))
    if (given === undefined) return setting.default === undefined ? undefined : setting.kind.parse(setting.default)
    const value = setting.kind.parse(given)
    if (value !== undefined) return value
    const shown = setting.secret ? 'the value' : show(setting.kind.culprit?.(given) ?? given)
    return this.fault(setting.name, `${shown} is not allowed`, setting.kind.allowed)
  }

  fault(name: string, problem: string, allowed: string): undefined {
    this.faults.push({ name, problem, allowed })
    return undefined
  }

  /** Variables with Cadre's prefix that are set and match no setting. */
  unknownNames(): string[] {
    return Object.keys(this.env)
      .filter((name) => name.startsWith('CADRE_') && !this.#known.has(name) && !ofClients.has(name))
      .sort()
  }

  #reading({ name, secret, default: fallback }: Setting<unknown>, given: string | undefined): Reading {
    const file = (secret && this.env[`${name}_FILE`]) || undefined
    const variable = file === undefined ? (this.env[name] ? name : null) : `${name}_FILE`
    const text = secret ? '' : withoutUserInfo(given ?? fallback ?? '')
    return {
      section: this.section,
      name,
      is_secret: secret,
      variable,
      ...(file === undefined ? {} : { file }),
      text: text === '' ? null : text,
    }
  }

  #text({ name, secret }: Setting<unknown>): string | undefined {
    this.#known.add(name)
    const value = this.env[name] || undefined
    if (!secret) return value
    this.#known.add(`${name}_FILE`)
    const file = this.env[`${name}_FILE`] || undefined
    if (file === undefined) return value
    if (value !== undefined) return this.fault(name, `${name}_FILE is set too`, 'only one of the two')
    return this.#contents(`${name}_FILE`, file)
  }

  #contents(name: string, file: string): string | undefined {
    const allowed = 'a readable file with nothing but the value in it'
    try {
      const text = readFileSync(file, 'utf8').replace(/\r?\n$/, '')
      return text === '' ? this.fault(name, `${show(file)} is empty`, allowed) : text
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
      return this.fault(name, `${show(file)} cannot be read (${code})`, allowed)
    }
  }
}

/** Reads further model servers. A key without an address, set or known, is an error, because it would have no effect. */
function readProviders(reader: Reader): ProviderConfig[] {
  const middles = Object.keys(reader.env).flatMap((name) => {
    const [, middle] =
      /^CADRE_PROVIDER_([A-Z][A-Z0-9_]{0,39})_(?:BASE_URL|API_KEY|API_KEY_FILE|PROTOCOL)$/.exec(name) ?? []
    return middle !== undefined && reader.env[name] ? [middle] : []
  })
  return [...new Set(middles)].sort().flatMap((middle) => {
    const called = <T>(setting: Setting<T>): Setting<T> => ({
      ...setting,
      name: setting.name.replace('<NAME>', middle),
    })
    const errorsBefore = reader.faults.length
    const name = middle.toLowerCase().replaceAll('_', '-')
    const given = reader.read(called(providerSettings.base_url))
    const api_key = reader.read(called(providerSettings.api_key))
    const protocol = reader.read(called(providerSettings.protocol))
    const base_url =
      given ?? (api_key !== undefined && Object.hasOwn(knownAddresses, name) ? knownAddresses[name] : undefined)
    if (takenProviders.includes(name)) {
      reader.fault(
        called(providerSettings.base_url).name,
        `"${name}" is built in`,
        'any name but ' + takenProviders.join(', '),
      )
    } else if (base_url === undefined && reader.faults.length === errorsBefore) {
      reader.fault(
        called(providerSettings.base_url).name,
        `it is unset, but the ${api_key === undefined ? 'protocol' : 'key'} is set`,
        providerSettings.base_url.kind.allowed,
      )
    }
    return base_url === undefined
      ? []
      : [
          {
            name,
            base_url,
            ...(api_key === undefined ? {} : { api_key }),
            ...(protocol === undefined ? {} : { protocol }),
          },
        ]
  })
}

const shownMax = 80

/** A value for a message: one line, cut, and without a password in a URL. */
function show(value: string): string {
  const text = JSON.stringify(withoutUserInfo(value))
  return text.length > shownMax ? `${text.slice(0, shownMax)}…"` : text
}

/** Text without user names and passwords of URLs. */
function withoutUserInfo(text: string): string {
  return text.replace(/\/\/[^/@]*@/g, '//…@')
}

/** A secret and its secret parts: the password of a URL, the values of headers; also percent-decoded. */
function secretsIn(text: string): string[] {
  const url = URL.parse(text)
  const parts = url ? [url.password] : text.split(',').map((entry) => entry.slice(entry.indexOf('=') + 1).trim())
  return [...new Set([text, ...parts].flatMap((part) => [part, decoded(part)]))].filter((part) => part !== '')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

import { Cadre } from '#sdk/client.ts'
import type { Asking } from './ask.ts'
import { type Environment, readSettings, type Setting, type SettingName } from './config/config.ts'
import { type Login, readLogin } from './config/credentials.ts'
import { profileNames } from './config/profiles.ts'
import { NotLoggedIn, UsageError } from './failure.ts'
import { idOf } from './names.ts'
import type { Filter } from './output/jq.ts'
import { Output } from './output/output.ts'
import { plain } from './output/plain.ts'
import { refreshed } from './config/refresh.ts'

/** Options that every command has, by their names in commander. */
export interface CommonOptions {
  json?: boolean
  fields?: string
  jq?: string
  input?: boolean
  yes?: boolean
  dryRun?: boolean
  quiet?: boolean
  debug?: boolean
  color?: boolean
  profile?: string
  baseUrl?: string
  project?: string
}

/** The context of a command. */
export interface Context extends Asking {
  env: Environment
  options: CommonOptions
  out: Output
  settings: Record<SettingName, Setting>
  profile: string
  base_url: string
  /** The login of the profile at this service. */
  login: Login | undefined
  /** The id of the selected project, which may be given by name. Throws `UsageError` if none is selected. */
  project(): Promise<string>
  /** A client with the credential of the profile. Throws `NotLoggedIn` without one, unless `isPublic`. */
  client(isPublic?: boolean): Cadre
}

/** Makes the context of a command from its options, the environment and the files. */
export function contextOf(options: CommonOptions, env: Environment, filter?: Filter, timeout_ms?: number): Context {
  const flags = { profile: options.profile, base_url: options.baseUrl, project: options.project }
  const settings = readSettings(env, flags, process.cwd())
  const profile = settings.profile.value!
  const base_url = settings.base_url.value!.replace(/(?<!\/)\/+$/, '').replace(/\/api\/v1$/, '')
  if (!/^https?:\/\//i.test(base_url) || !URL.canParse(base_url))
    throw new UsageError(
      `The service must be an address with http:// or https://, not ${base_url} (${settings.base_url.source}).`,
    )
  const login = readLogin(env, profile, base_url)
  const isTerminal = process.stdout.isTTY
  const out = new Output({
    json: options.json ?? filter !== undefined,
    fields: options.fields
      ?.split(',')
      .map((field) => field.trim())
      .filter((field) => field !== ''),
    filter,
    isTerminal,
    hasColor: isTerminal && options.color !== false && !env.NO_COLOR && env.TERM !== 'dumb',
    quiet: options.quiet ?? false,
  })
  let project: Promise<string> | undefined
  const context: Context = {
    env,
    options,
    out,
    settings,
    profile,
    base_url,
    login,
    canAsk: options.input !== false && process.stdin.isTTY && process.stderr.isTTY,
    async project() {
      const { value } = settings.project
      if (value === undefined)
        throw new UsageError('No project is selected. Use --project, CADRE_PROJECT, or `cadre projects use <project>`.')
      return (project ??= idOf(context, 'project_id', value))
    },
    client(isPublic = false) {
      const key = env.CADRE_API_KEY || login?.api_key
      const { source } = settings.profile
      // The profile must exist, unless the address comes from a flag, or from a variable without a flag for the profile.
      const isAddressSaid =
        settings.base_url.source === 'flag' || (settings.base_url.source === 'CADRE_BASE_URL' && source !== 'flag')
      if (!isAddressSaid && source !== 'default' && !profileNames(env).includes(profile))
        throw new UsageError(
          `There is no profile ${JSON.stringify(profile)} (${source}). Profiles: ${profileNames(env).join(', ')}.`,
        )
      const access = key || !login?.access_token ? undefined : login
      if (!key && !access && !isPublic) throw new NotLoggedIn(`Not logged in to ${base_url}.`)
      let current = access
      return new Cadre({
        baseURL: base_url,
        ...(current
          ? {
              token: async () => {
                current = await refreshed(current!, env, profile)
                return current.access_token!
              },
            }
          : { apiKey: key ?? null }),
        headers: { 'user-agent': 'cadre-cli/0.1.0' },
        logger: { debug() {}, warn: (message) => out.note(`cadre: ${message}`) },
        ...(options.debug ? { fetch: reportedFetch } : {}),
        ...(timeout_ms === undefined ? {} : { timeout_ms, maxRetries: 0 }),
      })
    },
  }
  return context
}

const secretHeaders = ['authorization', 'x-api-key', 'cookie', 'set-cookie']

/** Sends a request, and prints request and response to standard error, without secrets and bodies. */
async function reportedFetch(...[address, init]: Parameters<typeof fetch>): Promise<Response> {
  const say = (text: string) => process.stderr.write(`${plain(text)}\n`)
  const headers = (given: Headers, mark: string) =>
    given.forEach((value, name) => say(`${mark} ${name}: ${secretHeaders.includes(name) ? '[redacted]' : value}`))
  say(`> ${init?.method ?? 'GET'} ${address instanceof Request ? address.url : String(address)}`)
  headers(new Headers(init?.headers), '>')
  const response = await fetch(address, init)
  say(`< ${response.status}`)
  headers(response.headers, '<')
  return response
}

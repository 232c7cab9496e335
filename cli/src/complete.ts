import type { Environment } from './config/config.ts'
import { contextOf } from './context.ts'
import { profileNames } from './config/profiles.ts'
import { optionsWithValue } from './define.ts'
import { candidates } from './names.ts'
import { clientProgram } from './program.ts'

/** The shell blocks for this time after Tab. */
const timeout_ms = 2000

/**
 * Completions of the last argument, for the scripts of `cadre completion`: names and ids of resources, projects, profiles.
 * Empty if the service does not respond in time, because a shell cannot show an error.
 */
export async function complete(args: readonly string[], env: Environment): Promise<string[]> {
  const current = args.at(-1) ?? ''
  const before = args.slice(0, -1)
  const option = optionsWithValue[before.at(-1) ?? '']
  if (option === 'profile') return profileNames(env)
  const flags: Record<string, string> = {}
  const positional: string[] = []
  for (let at = 0; at < before.length; at++) {
    const name = optionsWithValue[before[at]!]
    if (name !== undefined) flags[name] = before[++at] ?? ''
    else if (!before[at]!.startsWith('-')) positional.push(before[at]!)
  }
  const isProject = option === 'project'
  const [noun = '', verb] = positional
  const group = clientProgram(env, { noun, isBrief: true }).commands.find((one) => one.name() === noun)
  const command = group?.commands.find((one) => one.name() === verb) ?? group
  const argument = command?.registeredArguments[positional.length - (command === group ? 1 : 2)]?.name()
  if (noun === 'profiles') return argument === 'name' ? profileNames(env) : []
  if (argument === undefined && !isProject) return []
  const { profile, baseUrl, project } = flags
  const context = contextOf({ profile, baseUrl, project }, env, undefined, timeout_ms)
  const found = await candidates(context, isProject ? 'project_id' : argument!).catch(() => [])
  // Returns ids if the argument begins like an id, or for names that a shell would split.
  const isBeginningId = /^(?:[a-z]+_|proj_|\d)/.test(current)
  return found.map(({ id, name }) => (isBeginningId || !/^[\w.@-]+$/.test(name) ? id : name))
}

import { readJson, readUserFile } from '../../config/config.ts'
import { credentialsPath } from '../../config/credentials.ts'
import { profileNames } from '../../config/profiles.ts'
import { define, type AddCommand } from '../../define.ts'

/** `cadre profiles list`. */
export const addProfilesList: AddCommand = (program) =>
  define(program, 'profiles list', {
    summary: 'List profiles.',
    description: 'A profile is a service with a login and a selected project.',
    examples: ['cadre profiles list'],
    async run({ env, profile, out }) {
      const { profiles = {} } = readUserFile(env)
      const logins = readJson(credentialsPath(env)) ?? {}
      const names = [...new Set([...profileNames(env), profile])].sort()
      const entries = names.map((name) => ({
        name,
        base_url: profiles[name]?.base_url,
        project: profiles[name]?.project,
        is_logged_in: name in logins,
        is_chosen: name === profile,
      }))
      out.list(entries, ['name', 'base_url', 'project', 'is_logged_in', 'is_chosen'])
    },
  })

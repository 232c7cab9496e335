import { changeProfile, settingNames } from '../../config/config.ts'
import { define, type AddCommand } from '../../define.ts'
import { UsageError } from '../../failure.ts'

/** `cadre config set`. */
export const addConfigSet: AddCommand = (program) =>
  define(program, 'config set', {
    summary: 'Store a setting in the profile.',
    description: 'Settings of a profile: base_url, project, oauth_client_id.',
    args: ['<name>', '<value>'],
    examples: ['cadre config set base_url https://cadre.example', 'cadre config set project 42 --profile staging'],
    async run({ env, profile }, [name = '', value = '']) {
      changeProfile(env, profile, { [kept(name)]: value })
    },
  })

/** The name of a setting that profiles have. Throws `UsageError`. */
export function kept(name: string): string {
  const names = settingNames.filter((one) => one !== 'profile')
  if (!names.some((one) => one === name))
    throw new UsageError(`The setting must be one of ${names.join(', ')}, not ${name}.`)
  return name
}

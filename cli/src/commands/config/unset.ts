import { changeProfile } from '../../config/config.ts'
import { define, type AddCommand } from '../../define.ts'
import { kept } from './set.ts'

/** Removes a setting from the profile. */
export const addConfigUnset: AddCommand = (program) =>
  define(program, 'config unset', {
    summary: 'Remove a setting from the profile.',
    description: 'What comes after it then counts: the default, or nothing.',
    args: ['<name>'],
    examples: ['cadre config unset project'],
    async run({ env, profile }, [name = '']) {
      changeProfile(env, profile, { [kept(name)]: undefined })
    },
  })

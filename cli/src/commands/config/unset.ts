import { changeProfile } from '../../config/config.ts'
import { define, type AddCommand } from '../../define.ts'
import { kept } from './set.ts'

/** `cadre config unset`. */
export const addConfigUnset: AddCommand = (program) =>
  define(program, 'config unset', {
    summary: 'Remove a setting from the profile.',
    description: 'The default then applies, if there is one.',
    args: ['<name>'],
    examples: ['cadre config unset project'],
    async run({ env, profile }, [name = '']) {
      changeProfile(env, profile, { [kept(name)]: undefined })
    },
  })

import { readUserFile, writeUserFile } from '../../config/config.ts'
import { define, type AddCommand } from '../../define.ts'

/** Chooses a profile. */
export const addProfilesUse: AddCommand = (program) =>
  define(program, 'profiles use', {
    summary: 'Choose a profile.',
    description: 'Keeps it for further commands. --profile and CADRE_PROFILE come before it.',
    args: ['<name>'],
    examples: ['cadre profiles use staging'],
    async run({ env, out }, [name = '']) {
      writeUserFile(env, { ...readUserFile(env), profile: name })
      out.note(`The profile is now ${name}.`)
    },
  })

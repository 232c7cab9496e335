import { readUserFile, writeUserFile } from '../../config/config.ts'
import { profileNames } from '../../config/profiles.ts'
import { define, type AddCommand } from '../../define.ts'
import { CommandFailure } from '../../failure.ts'

/** `cadre profiles use`. */
export const addProfilesUse: AddCommand = (program) =>
  define(program, 'profiles use', {
    summary: 'Select a profile.',
    description: 'Selects the profile of further commands. --profile and CADRE_PROFILE take precedence.',
    args: ['<name>'],
    examples: ['cadre profiles use staging'],
    async run({ env, out }, [name = '']) {
      const names = profileNames(env)
      if (!names.includes(name))
        throw new CommandFailure(
          `There is no profile ${JSON.stringify(name)}. Profiles: ${names.join(', ')}.`,
          `\`cadre login --with-key --profile ${name}\` creates it`,
        )
      writeUserFile(env, { ...readUserFile(env), profile: name })
      out.note(`Selected the profile ${name}.`)
    },
  })

import { readUserFile, writeUserFile } from '../../config/config.ts'
import { profileNames } from '../../config/profiles.ts'
import { define, type AddCommand } from '../../define.ts'
import { CommandFailure } from '../../failure.ts'

/** Chooses a profile. */
export const addProfilesUse: AddCommand = (program) =>
  define(program, 'profiles use', {
    summary: 'Choose a profile.',
    description: 'Keeps it for further commands. --profile and CADRE_PROFILE come before it.',
    args: ['<name>'],
    examples: ['cadre profiles use staging'],
    async run({ env, out }, [name = '']) {
      const names = profileNames(env)
      if (!names.includes(name))
        throw new CommandFailure(
          `There is no profile ${JSON.stringify(name)}; there are ${names.join(', ')}.`,
          `\`cadre login --with-key --profile ${name}\` makes it`,
        )
      writeUserFile(env, { ...readUserFile(env), profile: name })
      out.note(`The profile is now ${name}.`)
    },
  })

import { changeProfile } from '../../config/config.ts'
import { define, type AddCommand } from '../../define.ts'

/** Chooses the project of a profile. */
export const addProjectsUse: AddCommand = (program) =>
  define(program, 'projects use', {
    summary: 'Choose the project that commands are about.',
    description: 'Keeps it in the profile. --project and CADRE_PROJECT come before it.',
    args: ['<project_id>'],
    examples: ['cadre projects use 42'],
    async run({ client, env, profile, out }, [project = '']) {
      const { id, name } = await client().projects.get(project)
      changeProfile(env, profile, { project: String(id) })
      out.note(`Commands are now about ${name} (${id}).`)
    },
  })

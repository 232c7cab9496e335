import { changeProfile } from '../../config/config.ts'
import { define, type AddCommand } from '../../define.ts'

/** `cadre projects use`. */
export const addProjectsUse: AddCommand = (program) =>
  define(program, 'projects use', {
    summary: 'Select the project of further commands.',
    description: 'Stores it in the profile. --project and CADRE_PROJECT take precedence.',
    args: ['<project_id>'],
    examples: ['cadre projects use 42'],
    async run({ client, env, profile, out }, [project = '']) {
      const { id, name } = await client().projects.get(project)
      changeProfile(env, profile, { project: String(id) })
      out.note(`Selected the project ${name} (${id}).`)
    },
  })

import { define, type AddCommand } from '../../define.ts'
import { settingNames } from '../../config/config.ts'

/** `cadre config view`. */
export const addConfigView: AddCommand = (program) =>
  define(program, 'config view', {
    summary: 'Show every setting and its source.',
    description:
      'Precedence: flags, environment, .cadre.json of this folder or a parent, the profile in the user file, defaults.',
    examples: ['cadre config view'],
    async run({ settings, out, login, env, base_url }) {
      const credential = env.CADRE_API_KEY
        ? { name: 'credential', value: 'an API key', source: 'CADRE_API_KEY' }
        : {
            name: 'credential',
            value: login?.api_key ? 'an API key' : login ? 'a token' : undefined,
            source: login ? `login to ${base_url}` : 'not set',
          }
      const entries = settingNames.map((name) => ({ name, ...settings[name] }))
      out.list([...entries, credential], ['name', 'value', 'source'])
    },
  })

import { Cadre } from '#sdk/client.ts'
import { secret } from '../ask.ts'
import { credentialsPath, writeLogin } from '../credentials.ts'
import { define, type AddCommand } from '../define.ts'
import { UsageError } from '../failure.ts'

/** Logs in. */
export const addLogin: AddCommand = (program) =>
  define(program, 'login', {
    summary: 'Log in to a service.',
    description:
      'Keeps a credential in a file that only you may read. --with-key reads an API key: typed unseen, or standard input.',
    examples: ['cadre login --with-key < key.txt'],
    async run(context, _, { withKey }) {
      const { env, profile, base_url, out } = context
      if (!withKey) throw new UsageError('Say --with-key.')
      const api_key = await secret(context, 'API key')
      if (api_key === '') throw new UsageError('No key came.')
      const user = await new Cadre({ baseURL: base_url, apiKey: api_key }).user.get()
      writeLogin(env, profile, { base_url, api_key })
      out.note(`Logged in to ${base_url} as ${user.name}. The key is in ${credentialsPath(env)}.`)
    },
  }).option('--with-key', 'Reads an API key.')

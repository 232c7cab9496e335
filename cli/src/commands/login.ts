import { Cadre } from '#sdk/client.ts'
import { secret } from '../ask.ts'
import { changeProfile } from '../config.ts'
import type { Context } from '../context.ts'
import { credentialsPath, type Login, writeLogin } from '../credentials.ts'
import { define, type AddCommand } from '../define.ts'
import { UsageError } from '../failure.ts'
import { loginByDevice } from '../device.ts'
import { loginByBrowser } from '../loopback.ts'

/** What the console of an operator needs; fewer are asked for with `--scope`. */
const scopeDefault = 'read write'

/** Logs in. */
export const addLogin: AddCommand = (program) =>
  define(program, 'login', {
    summary: 'Log in to a service.',
    description:
      'Opens a browser, where the service asks whether the command line may act for you (OAuth 2.0, authorization code with PKCE). The app must be registered once, by `cadre oauth-clients create`. --device is for a machine without a browser: it shows a code that is confirmed on any other one. --with-key reads an API key instead: typed unseen, or standard input. The credential is kept in a file that only you may read.',
    examples: [
      'cadre login --with-key < key.txt',
      'cadre login --device --client-id client_01jcm3x5v8f9a2b4c6d8e0g2h4',
      'cadre login --base-url https://cadre.example --client-id client_01jcm3x5v8f9a2b4c6d8e0g2h4',
    ],
    async run(context, _, { withKey, clientId, scope, browser, device }) {
      const { env, profile, base_url, out } = context
      if (withKey && device) throw new UsageError('--with-key and --device exclude each other.')
      const login = withKey
        ? await byKey(context)
        : device
          ? await byDevice(context, clientId, scope)
          : await byBrowser(context, clientId, scope, browser !== false)
      const client = new Cadre({
        baseURL: base_url,
        ...(login.api_key === undefined ? { token: login.access_token } : { apiKey: login.api_key }),
      })
      const user = await client.user.get()
      writeLogin(env, profile, login)
      changeProfile(env, profile, { base_url, ...(login.client_id ? { oauth_client_id: login.client_id } : {}) })
      out.note(`Logged in to ${base_url} as ${user.name}. The credential is in ${credentialsPath(env)}.`)
    },
  })
    .option('--with-key', 'Reads an API key.')
    .option('--device', 'Shows a code to be confirmed in the browser of another machine.')
    .option('--client-id <id>', 'The registered app; kept in the profile.')
    .option('--scope <scopes>', `What to ask for, with spaces between; "${scopeDefault}" where nothing is said.`)
    .option('--no-browser', 'Shows the address only.')

async function byKey(context: Context): Promise<Login> {
  const api_key = await secret(context, 'API key')
  if (api_key === '') throw new UsageError('No key came.')
  return { base_url: context.base_url, api_key }
}

/** What is asked for, and on behalf of which app. Throws `UsageError` where none is known. */
function asked({ base_url, settings }: Context, client: unknown, scope: unknown) {
  const client_id = typeof client === 'string' ? client : settings.oauth_client_id.value
  if (client_id === undefined)
    throw new UsageError(
      'No app is known to log in with: say --client-id, or --with-key. An administrator registers one: `cadre oauth-clients create --name cadre-cli --redirect-uris http://127.0.0.1/callback --scopes read,write --native true --confidential false`.',
    )
  return { base_url, client_id, scope: typeof scope === 'string' ? scope : scopeDefault }
}

function byBrowser(context: Context, client: unknown, scope: unknown, isOpened: boolean): Promise<Login> {
  return loginByBrowser({
    ...asked(context, client, scope),
    // Not a note: nobody could log in without it.
    show: (url) => void process.stderr.write(`Go to this address to log in:\n\n  ${url}\n\n`),
    isOpened: isOpened && context.out.options.isTerminal,
  })
}

function byDevice(context: Context, client: unknown, scope: unknown): Promise<Login> {
  return loginByDevice({
    ...asked(context, client, scope),
    show: (address, code) =>
      void process.stderr.write(`Go to ${address} in any browser, and confirm this code:\n\n  ${code}\n\n`),
  })
}

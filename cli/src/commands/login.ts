import { Cadre } from '#sdk/client.ts'
import { secret } from '../ask.ts'
import { changeProfile } from '../config/config.ts'
import type { Context } from '../context.ts'
import { credentialsPath, keepLogin, type Login } from '../config/credentials.ts'
import { define, type AddCommand } from '../define.ts'
import { UsageError } from '../failure.ts'
import { loginByDevice } from '../config/device.ts'
import { loginByBrowser } from '../config/loopback.ts'
import { plain } from '../output/plain.ts'

/** Default scopes; `--scope` requests others. */
const scopeDefault = 'read write'

/** `cadre login`. */
export const addLogin: AddCommand = (program) =>
  define(program, 'login', {
    summary: 'Log in to a service.',
    description:
      'Opens a browser to authorize the command line (OAuth 2.0, authorization code with PKCE). The app must be registered once with `cadre oauth-clients create`. --device shows a code to type in a browser on another machine instead. --with-key reads an API key, from a prompt or standard input. The credential is stored in a file that only you can read.',
    examples: [
      'cadre login --with-key < key.txt',
      'cadre login --base-url https://cadre.example --client-id client_01jcm3x5v8f9a2b4c6d8e0g2h4',
      'cadre login --device --client-id client_01jcm3x5v8f9a2b4c6d8e0g2h4',
    ],
    async run(context, _, { withKey, device, clientId, scope, browser }) {
      const { env, profile, base_url, out } = context
      if (withKey && device) throw new UsageError('Say --with-key or --device, not both.')
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
      await keepLogin(env, profile, login)
      changeProfile(env, profile, { base_url, ...(login.client_id ? { oauth_client_id: login.client_id } : {}) })
      out.note(`Logged in to ${base_url} as ${user.name}. The credential is in ${credentialsPath(env)}.`)
    },
  })
    .option('--with-key', 'Read an API key.')
    .option('--device', 'Show a code to type in a browser on another machine.')
    .option('--client-id <id>', 'The registered app; stored in the profile.')
    .option('--scope <scopes>', `Scopes separated by spaces; "${scopeDefault}" by default.`)
    .option('--no-browser', 'Print the URL without opening a browser.')

async function byKey(context: Context): Promise<Login> {
  const api_key = await secret(context, 'API key')
  if (api_key === '') throw new UsageError('No API key was given.')
  return { base_url: context.base_url, api_key }
}

/** The client id of the app. */
function appOf({ settings }: Context, given: unknown): string {
  const client_id = typeof given === 'string' ? given : settings.oauth_client_id.value
  if (client_id === undefined)
    throw new UsageError(
      'No app is configured for the login. Use --client-id or --with-key. An administrator registers an app with `cadre oauth-clients create --name cadre-cli --redirect-uris http://127.0.0.1/callback --scopes read,write --native true --confidential false`.',
    )
  return client_id
}

function byDevice(context: Context, client: unknown, scope: unknown): Promise<Login> {
  return loginByDevice({
    base_url: context.base_url,
    client_id: appOf(context, client),
    scope: typeof scope === 'string' ? scope : scopeDefault,
    // Not hidden by --quiet, because it is needed to log in.
    show: ({ user_code, verification_uri, verification_uri_complete }) =>
      void process.stderr.write(
        plain(
          `Go to ${verification_uri} and type ${user_code}, or go to\n\n  ${verification_uri_complete}\n\nWaiting until you have decided there.\n`,
        ),
      ),
  })
}

function byBrowser(context: Context, client: unknown, scope: unknown, isOpened: boolean): Promise<Login> {
  const { base_url, out } = context
  return loginByBrowser({
    base_url,
    client_id: appOf(context, client),
    scope: typeof scope === 'string' ? scope : scopeDefault,
    // Not hidden by --quiet, because it is needed to log in.
    show: (url) =>
      void process.stderr.write(
        `Go to this address to log in:\n\n  ${url}\n\nThe browser must be on this machine; \`cadre login --device\` is for any other.\n`,
      ),
    isOpened: isOpened && out.options.isTerminal,
  })
}

import { Cadre } from '#sdk/client.ts'
import { APIError } from '#sdk/errors.ts'
import { keepLogin } from '../config/credentials.ts'
import { define, type AddCommand } from '../define.ts'

/** `cadre logout`. */
export const addLogout: AddCommand = (program) =>
  define(program, 'logout', {
    summary: 'Log out.',
    description:
      'Revokes the token of the profile and removes its credential from this machine. A key stays valid: `cadre keys delete` revokes it.',
    examples: ['cadre logout'],
    async run({ env, profile, login, base_url, out }) {
      if (login === undefined) return out.note(`Not logged in to ${base_url}.`)
      const { refresh_token, client_id } = login
      // Removed even if the service cannot be reached.
      await keepLogin(env, profile, undefined)
      if (refresh_token !== undefined && client_id !== undefined) {
        const client = new Cadre({ baseURL: base_url, apiKey: null })
        try {
          await client.oauth.revoke({ token: refresh_token, client_id })
        } catch (error) {
          if (!(error instanceof APIError)) throw error
          out.note(`The token was removed from this machine, but the service did not revoke it: ${error.message}`)
        }
      }
      out.note(`Logged out of ${base_url}.`)
    },
  })

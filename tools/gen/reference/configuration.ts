import { ssoSettings } from '../../../server/src/config/config-sso.ts'
import { providerSettings, sections, takenProviders, type Setting } from '../../../server/src/config/config-settings.ts'
import { code, codes, section, table, text, type Page } from './markdown.ts'

/** Every setting, by section, and the settings of further model servers. */
export const configurationPage: Page = {
  title: 'Configuration',
  intro: 'Every setting is a variable of the environment, or a line of the file `.env` that `npm start` reads.',
  sources: ['server/src/config/config-settings.ts', 'server/src/config/config-sso.ts'],
  body: () =>
    [
      [
        'All are optional. The environment wins over `.env`, and an empty value counts as unset. All errors together are',
        'reported at the start, and the service does not run until all are fixed; an unknown name that begins with `CADRE_` is a',
        'warning. A setting that can come from a file is a secret: its value is never shown, and the variable in the last column may',
        'name a file that has it.',
      ].join('\n'),
      ...Object.entries(sections).map(([title, settings]) => section(title, settingTable(Object.values(settings)))),
      section(
        'Further model servers',
        [
          'As many as needed, each under its own name: `CADRE_PROVIDER_OLLAMA_BASE_URL` is the server of the models',
          '`ollama/…`. `<NAME>` is capital letters, digits and `_`, and `_` is `-` in the name of the models.',
          `${codes(takenProviders)} are taken.`,
        ].join('\n'),
        settingTable(Object.values(providerSettings)),
      ),
      section(
        'Sign-in with identity providers',
        [
          'As many as needed, each under its own name: see the [guide](../guides/sso.md). `CADRE_SSO_OKTA_ISSUER` and the other',
          'settings with this prefix define the provider `okta`. `<NAME>` is capital letters, digits and `_`, and `_` is `-` in the name of the',
          'provider. Issuer, client and secret are required.',
        ].join('\n'),
        settingTable(Object.values(ssoSettings)),
      ),
    ].join('\n\n'),
}

function settingTable(settings: readonly Setting<unknown>[]): string {
  return table(
    ['Setting', 'Default', 'Allowed', 'What it is', 'From a file'],
    settings.map((setting) => [
      code(setting.name),
      code(setting.default),
      text(setting.kind.allowed),
      text(setting.description) + exampleOf(setting),
      setting.secret ? code(`${setting.name}_FILE`) : '',
    ]),
  )
}

/** An example that says how to make a value is Markdown already. */
function exampleOf({ example }: Setting<unknown>): string {
  if (example === undefined) return ''
  return ` Example: ${example.includes('`') ? example : code(example)}.`
}

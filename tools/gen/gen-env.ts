import { writeFileSync } from 'node:fs'
import { ssoSettings } from '../../server/src/config/config-sso.ts'
import { providerSettings, sections, type Setting } from '../../server/src/config/config-settings.ts'

const file = new URL('../../.env.example', import.meta.url)
const width = 118

/** `.env.example`: every setting with what it means, commented out, at its default or with an example. */
export function envExample(): string {
  const all = {
    ...sections,
    'Further model servers (any <NAME>)': providerSettings,
    'Sign-in with identity providers (any <NAME>)': ssoSettings,
  }
  const parts = Object.entries(all).map(([title, settings]) =>
    [`# --- ${title} ---`, ...Object.values(settings).map(entry)].join('\n\n'),
  )
  const head = [
    '# Settings of Cadre. Copy to .env, which `npm start` reads, or set them in the environment, which wins.',
    '# All are optional; an empty value counts as unset. Made from server/src/config/config-settings.ts by `npm run gen`.',
  ]
  return `${[head.join('\n'), ...parts].join('\n\n')}\n`
}

function entry(setting: Setting<unknown>): string {
  const notes = [
    setting.description,
    `Allowed: ${setting.kind.allowed}.`,
    ...(setting.example && (setting.default || setting.secret) ? [`Example: ${setting.example}`] : []),
    ...(setting.secret ? [`Or ${setting.name}_FILE: a file with the value in it.`] : []),
  ]
  // A secret stays empty, so that no one uses an example's by removing the "#".
  const value = setting.secret ? '' : setting.default || setting.example
  return [...notes.flatMap(wrap), `#${setting.name}=${value ?? ''}`].join('\n')
}

function wrap(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + word.length < width) lines.push(`${lines.pop()} ${word}`)
    else lines.push(`# ${word}`)
  }
  return lines
}

if (import.meta.main) writeFileSync(file, envExample())

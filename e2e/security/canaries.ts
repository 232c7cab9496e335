import assert from 'node:assert/strict'

/** Secrets that were given to a service, and are to be found nowhere, in whatever form. */
export class Canaries {
  readonly #forms = new Map<string, ReadonlySet<string>>()

  get size(): number {
    return this.#forms.size
  }

  /** Remembers a secret, and gives it. A short one would be found by chance. */
  plant(name: string, secret: string): string {
    assert.ok(secret.length >= 8, name)
    this.#forms.set(name, formsOf(secret))
    return secret
  }

  /** Which secrets are in which places, as sentences. */
  found(places: Readonly<Record<string, string>>): string[] {
    return Object.entries(places).flatMap(([place, text]) =>
      [...this.#forms].flatMap(([name, forms]) => {
        const at = [...forms].map((form) => text.indexOf(form)).find((index) => index >= 0)
        return at === undefined ? [] : [`${name} in ${place}: ${text.slice(Math.max(0, at - 120), at + 40)}`]
      }),
    )
  }
}

/** A secret as it may be written: as it is, and as others write text and bytes. */
function formsOf(secret: string): Set<string> {
  const forms = new Set<string>()
  const bytes = Buffer.from(secret)
  forms.add(secret)
  forms.add(JSON.stringify(secret).slice(1, -1))
  forms.add(encodeURIComponent(secret))
  for (const encoded of encodedBytes(bytes)) forms.add(encoded)
  // What stands behind it is the key itself.
  if (secret.startsWith('whsec_')) {
    forms.add(secret.slice('whsec_'.length))
    for (const encoded of encodedBytes(Buffer.from(secret.slice('whsec_'.length), 'base64'))) forms.add(encoded)
  }
  return forms
}

function encodedBytes(bytes: Buffer): string[] {
  const hex = bytes.toString('hex')
  const percent = hex.replaceAll(/../g, '%$&')
  return [hex, hex.toUpperCase(), percent, percent.toUpperCase(), ...insideBase64(bytes)]
}

/** What of bytes shows in base64 of something that contains them: it depends on where they begin, in threes. */
function insideBase64(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const [from, to] = [Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)]
    const around = Buffer.concat([Buffer.alloc(before), bytes, Buffer.alloc(3)])
    return (['base64', 'base64url'] as const).map((encoding) => around.toString(encoding).slice(from, to))
  })
}

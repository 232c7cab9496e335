import { cleanText } from '../../platform/clean-text.ts'
import { encodedLengthMax, replaceEncoded } from './encoded-text.ts'
import { toolOutputMax, type ToolAnswer, ToolError } from './tool.ts'

/** Minimum length of a secret: shorter values are ordinary words, whose replacement would garble texts. */
const secretLengthMin = 4
/** Minimum length for the search in base64: shorter values match by chance. */
const base64LengthMin = 8
const replacement = '[redacted]'
const cutNote = (characters: number): string => `\n[cut: ${characters} characters in all]`

/** Replaces secrets in texts, in every form in which they may be written. */
export interface Redaction {
  text(text: string): string
  /** Redacts before it cuts, so that no part of a secret is left at the end. */
  answer(answer: ToolAnswer): ToolAnswer
  error(error: ToolError): ToolError
}

/** A redaction to which secrets can be added: tokens that are renewed while a task runs. */
export function growingRedaction(secrets: readonly string[]): Redaction & { add(secret: string): void } {
  const known = [...secrets]
  let current = makeRedaction(known)
  return {
    text: (text) => current.text(text),
    answer: (answer) => current.answer(answer),
    error: (error) => current.error(error),
    add(secret) {
      if (known.includes(secret)) return
      known.push(secret)
      current = makeRedaction(known)
    },
  }
}

/** Made once per toolset: the forms of all values, the longest first, because one may contain another. */
export function makeRedaction(secrets: readonly string[]): Redaction {
  const forms = [...new Set(secrets.flatMap(formsOf))].toSorted((a, b) => b.length - a.length)
  const values = wholeValues(secrets)
  const longest = Math.max(forms[0]?.length ?? 0, (values[0]?.length ?? 0) * encodedLengthMax)
  const text = (given: string): string =>
    replaceEncoded(
      forms.reduce((clean, form) => clean.replaceAll(form, replacement), given),
      values,
      replacement,
    )
  return {
    text,
    answer: (answer) => ({
      ...answer,
      content: cutRedacted(answer.content, text, longest),
      ...(answer.error === undefined
        ? {}
        : { error: { code: answer.error.code, message: cutRedacted(answer.error.message, text, longest) } }),
    }),
    error: ({ code, message, uncertain, network, cause }) =>
      new ToolError(code, cutRedacted(message, text, longest), { uncertain, network, cause }),
  }
}

/**
 * The beginning of a text without secrets. Only as much as can be kept is searched. A secret may begin before the cut
 * and end after it, so that many characters before the cut are dropped too.
 */
function cutRedacted(given: string, text: (text: string) => string, longest: number): string {
  const max = toolOutputMax - 60
  const looked = given.slice(0, toolOutputMax + longest)
  if (looked.length === given.length) {
    const whole = cleanText(text(given))
    return whole.length <= toolOutputMax ? whole : cleanText(whole.slice(0, max)) + cutNote(given.length)
  }
  const redacted = text(looked)
  return cleanText(redacted.slice(0, Math.max(0, Math.min(max, redacted.length - longest)))) + cutNote(given.length)
}

/** Values that count as secrets, the longest first. */
function wholeValues(secrets: readonly string[]): string[] {
  const long = secrets.filter(({ length }) => length >= secretLengthMin)
  return [...new Set(long.map((secret) => secret.toWellFormed()))].toSorted((a, b) => b.length - a.length)
}

/**
 * A value in its plain form and in the forms of URLs, JSON, hexadecimal, and base64 at any offset. `replaceEncoded`
 * finds other percent-encodings and HTML.
 */
function formsOf(secret: string): string[] {
  if (secret.length < secretLengthMin) return []
  const hex = Buffer.from(secret.toWellFormed()).toString('hex')
  const value = secret.toWellFormed()
  const encoded = encodeURIComponent(value)
  return [
    secret,
    encoded,
    encoded.replaceAll('%20', '+'),
    new URLSearchParams([['', value]]).toString().slice(1),
    ...jsonForms(secret),
    hex,
    hex.toUpperCase(),
    ...(Buffer.byteLength(value) < base64LengthMin ? [] : base64Forms(Buffer.from(value))),
  ]
}

/** The forms in JSON and in JSON within JSON; some writers escape all characters beyond ASCII, and slashes. */
function jsonForms(secret: string): string[] {
  const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
  const once = escaped(secret)
  const ascii = once.replaceAll(/[^\u0020-\u007e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const forms = [once, ascii, once.replaceAll('/', '\\/'), ascii.replaceAll('/', '\\/')]
  return [...forms, ...forms.map(escaped)]
}

/**
 * Three bytes become four characters of base64, so the form of a value depends on the number of bytes before it
 * (`user:` in Basic authentication). Characters that it shares with its neighbours are left out, the last one only if
 * something follows.
 */
function base64Forms(value: Buffer): string[] {
  return [0, 1, 2].flatMap((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), value])
    const padded = whole.toString('base64').slice(Math.ceil((before * 8) / 6))
    const last = padded.replace(/(?<!=)=+$/, '')
    const own = whole.length % 3 === 0 ? last : last.slice(0, -1)
    return [padded, last, own].flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')])
  })
}

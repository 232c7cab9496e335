import type { AddressObject } from 'mailparser'
import { cleanValue } from '../../platform/clean-text.ts'

/** An e-mail for templates and filters. Addresses are lowercase. */
export interface Email {
  message_id: string | null
  /** The id of the first message of the conversation; the same for all replies. */
  conversation_id: string | null
  in_reply_to: string | null
  from: string | null
  from_name: string | null
  to: string[]
  cc: string[]
  subject: string
  date: string | null
  /** The text; converted from the HTML if there is no text part. */
  text: string
  attachments: { name: string; media_type: string; bytes: number }[]
  /** Whether it is an automatic reply (RFC 3834 §5). Answering it could cause a mail loop. */
  is_automatic: boolean
}

/**
 * Maximum number of characters of HTML that are converted to text; the rest is dropped, because the conversion is
 * slow.
 */
const htmlMax = 200_000

/** Parses a raw message (RFC 5322, MIME). Attachments are only listed by name. */
export async function readEmail(message: Buffer): Promise<Email> {
  // Loading takes a quarter of a second, so it happens only when an e-mail arrives.
  const { simpleParser } = await import('mailparser')
  const mail = await simpleParser(message, {
    ...{ skipTextToHtml: true, skipImageLinks: true, skipTextLinks: true },
    maxHtmlLengthToParse: htmlMax,
  })
  const references = [mail.references ?? []].flat()
  const message_id = mail.messageId ?? null
  const in_reply_to = mail.inReplyTo ?? null
  const automatic = mail.headers.get('auto-submitted')
  return cleanValue({
    message_id,
    conversation_id: references[0] ?? in_reply_to ?? message_id,
    in_reply_to,
    from: addressesOf(mail.from)[0] ?? null,
    from_name: mail.from?.value[0]?.name || null,
    to: addressesOf(mail.to),
    cc: addressesOf(mail.cc),
    subject: mail.subject ?? '',
    date: dateOf(mail.headerLines.find(({ key }) => key === 'date')?.line),
    text: mail.text ?? '',
    attachments: mail.attachments.map(({ filename, contentType, size }) => ({
      name: filename ?? '',
      media_type: contentType,
      bytes: size,
    })),
    is_automatic: typeof automatic === 'string' && automatic.trim().toLowerCase() !== 'no',
  }) as Email
}

/** The date of a message; null if it is invalid. The library would return the current time. */
function dateOf(line: string | undefined): string | null {
  const time = Date.parse(line?.slice(line.indexOf(':') + 1) ?? '')
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}

function addressesOf(from: AddressObject | AddressObject[] | undefined): string[] {
  return [from ?? []]
    .flat()
    .flatMap(({ value }) => value)
    .flatMap(({ address, group }) => (group ? group.map((one) => one.address) : [address]))
    .flatMap((address) => (address ? [address.toLowerCase()] : []))
}

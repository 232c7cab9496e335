import type { AddressObject } from 'mailparser'
import { cleanValue } from '../../platform/clean-text.ts'

/** An e-mail as templates and filters see it. Addresses are in lower case. */
export interface Email {
  message_id: string | null
  /** The first message of the conversation: the same for every answer to it. */
  conversation_id: string | null
  in_reply_to: string | null
  from: string | null
  from_name: string | null
  to: string[]
  cc: string[]
  subject: string
  date: string | null
  /** The text, made of the HTML where there is no other. */
  text: string
  attachments: { name: string; media_type: string; bytes: number }[]
  /** Whether a program wrote it in answer to another message (RFC 3834 §5): answering it may never end. */
  is_automatic: boolean
}

/** Characters of HTML that are made a text; more take long, and are left out. */
const htmlMax = 200_000

/** Reads a message as it came (RFC 5322, MIME). What it attaches is only named. */
export async function readEmail(message: Buffer): Promise<Email> {
  // A quarter of a second to load, which only services need that get e-mails.
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

/** Read here: of a date that is none the library makes the time at which it was read. */
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

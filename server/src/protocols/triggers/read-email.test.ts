import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readEmail } from './read-email.ts'

const lines = (...all: string[]): Buffer => Buffer.from(all.join('\r\n'))
const head = [
  'From: "Ada Lovelace" <Ada@Example.com>',
  'To: Support <support@example.com>, team: one@example.com, two@example.com;',
  'Cc: three@example.com',
  'Date: Fri, 20 Nov 2026 10:30:00 +0100',
  'Message-ID: <m3@example.com>',
]

it('an e-mail is parsed with its text, addresses, conversation and names of attachments', async () => {
  const mail = await readEmail(
    lines(
      ...head,
      'Subject: =?utf-8?B?VMO8cg==?= squeaks',
      'In-Reply-To: <m2@example.com>',
      'References: <m1@example.com> <m2@example.com>',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=b',
      '',
      '--b',
      'Content-Type: text/plain; charset=iso-8859-1',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      'Die T=FCr.',
      '--b',
      'Content-Type: image/png; name=door.png',
      'Content-Disposition: attachment; filename=door.png',
      'Content-Transfer-Encoding: base64',
      '',
      'iVBORw==',
      '--b--',
      '',
    ),
  )
  assert.deepEqual(mail, {
    ...{ message_id: '<m3@example.com>', conversation_id: '<m1@example.com>', in_reply_to: '<m2@example.com>' },
    ...{ from: 'ada@example.com', from_name: 'Ada Lovelace', cc: ['three@example.com'] },
    to: ['support@example.com', 'one@example.com', 'two@example.com'],
    ...{ subject: 'Tür squeaks', date: '2026-11-20T09:30:00.000Z', text: 'Die Tür.' },
    attachments: [{ name: 'door.png', media_type: 'image/png', bytes: 4 }],
    is_automatic: false,
  })
})

it('an e-mail with only HTML is converted to text, and starts its own conversation', async () => {
  const mail = await readEmail(
    lines(...head, 'Subject: x', 'Content-Type: text/html', '', '<p>The <b>door</b><script>steal()</script></p>'),
  )
  assert.equal(mail.text.trim(), 'The door')
  assert.equal(mail.conversation_id, '<m3@example.com>')
})

it('an automatic e-mail is recognized by its header', async () => {
  for (const [value, expected] of [
    ['auto-replied', true],
    ['Auto-Generated', true],
    ['no', false],
  ] as const)
    assert.equal((await readEmail(lines(...head, `Auto-Submitted: ${value}`, '', 'x'))).is_automatic, expected, value)
})

it('any bytes are parsed as an e-mail without an error', async () => {
  for (const text of [
    '',
    'no header',
    '\0\0\0',
    'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b',
    'Date: never\r\n\r\nx',
  ]) {
    const mail = await readEmail(Buffer.from(text))
    assert.deepEqual([mail.from, mail.date, mail.attachments], [null, null, []], text)
  }
})

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { cronWords } from './cron-description.ts'

it('usual cron patterns are described in words, and others are shown as they are', () => {
  for (const [cron, text] of [
    ['* * * * *', 'Every minute'],
    ['*/15 * * * *', 'Every 15 minutes'],
    ['0 * * * *', 'Every hour'],
    ['5 * * * *', 'Every hour at 5 minutes past'],
    ['0 */6 * * *', 'Every 6 hours'],
    ['30 7 * * *', 'Every day at 07:30'],
    ['0 8,17 * * *', 'Every day at 08:00 and 17:00'],
    ['30 7 * * mon-fri', 'Every weekday at 07:30'],
    ['30 7 * * 1-5', 'Every weekday at 07:30'],
    ['0 9 * * MON,thu', 'Every Monday and Thursday at 09:00'],
    ['0 9 * * 7', 'Every Sunday at 09:00'],
    ['0 0 1 * *', 'On day 1 of every month at 00:00'],
    ['0 0 L * *', 'On the last day of every month at 00:00'],
    ['@daily', 'Every day at 00:00'],
    ['@weekly', 'Every Sunday at 00:00'],
    // Every seventh minute begins anew with each hour, so it is not every 7 minutes.
    ['*/7 * * * *', undefined],
    ['0 9 * * mon#1', undefined],
    ['0 9 1 * mon', undefined],
    ['0 0 1 1 *', undefined],
    ['nonsense', undefined],
  ] as const)
    assert.equal(cronWords(cron), text, cron)
})

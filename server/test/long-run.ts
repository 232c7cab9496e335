/** Whether this is `npm run test:long`: tests that have a long form then take it. */
export const isLongRun = process.env['CADRE_TEST_LONG'] === '1'

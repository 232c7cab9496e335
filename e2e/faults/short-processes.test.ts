import { apiKilled } from './f01-api-killed.ts'
import { failpoints } from './f02-failpoints.ts'
import { shortTest } from './short.ts'

shortTest(apiKilled)
shortTest(failpoints)

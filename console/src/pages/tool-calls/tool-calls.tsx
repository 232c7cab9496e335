import { ToolCallsPage } from './tool-calls-page.tsx'

export default ToolCallsPage

def devhost_device(:
